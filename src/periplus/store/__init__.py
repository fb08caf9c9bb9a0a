"""Storage of collections, one package per database, behind `model.ports`. SQL occurs nowhere else."""
