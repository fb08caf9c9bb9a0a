"""Linear models of scikit-learn on the same texts, run by the peers' Python: JSON in, scores of each model out."""

import json
import sys

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

given = json.load(sys.stdin)
vectors = TfidfVectorizer(sublinear_tf=True, min_df=2, strip_accents="unicode")
rows, asked = vectors.fit_transform(given["texts"]), vectors.transform(given["asked"])
labels = [at < given["positives"] for at in range(len(given["texts"]))]
machines = {
    "LinearSVC": LinearSVC(),
    "LogisticRegression": LogisticRegression(max_iter=1_000, class_weight="balanced"),
}
scores = {name: machine.fit(rows, labels).decision_function(asked).tolist() for name, machine in machines.items()}
json.dump(scores, sys.stdout)
