"""What does scikit-learn make of the same texts? Run by the peers' Python: JSON in, scores out."""

import json
import sys

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

given = json.load(sys.stdin)
vectors = TfidfVectorizer(sublinear_tf=True, min_df=2, strip_accents="unicode")
rows = vectors.fit_transform(given["texts"])
labels = [at < given["positives"] for at in range(len(given["texts"]))]
machine = LinearSVC().fit(rows, labels)
json.dump(machine.decision_function(vectors.transform(given["asked"])).tolist(), sys.stdout)
