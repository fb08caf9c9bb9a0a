"""Where do the circles of a network stand, so that linked ones are near, none covers another, and the same network looks the same?"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
ROUNDS = 400  # with 200 sites 300 still turned whole groups round; 400 take half a second
APART_ROUNDS = 200
GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))
GRAVITY = 0.6  # keeps groups without a link between them on one sheet
FLAT = 0.62  # height of the sheet as a share of its width
ROOM = 4.5  # of a sheet's area to that of the boxes: under 4 the arrows cannot be followed
SPREAD = 0.7  # power of the distance from the middle: forces crowd the best linked sites there, where the names have no room


def placed(boxes: Points, sources: NDArray[np.int64], ends: NDArray[np.int64], weights: NDArray[np.float64]) -> Points:
    """float64[n, 2]: the middle of each of n circles, in the units of boxes.

    boxes: float64[n, 2], half the width and half the height that each needs, its label among them. weights: > 0, of each arrow.
    Forces as in Noack's LinLog model with repulsion by degree, from a spiral by degree: no chance, so no seed. O(n^2) a round.
    """
    size = len(boxes)
    if size < 2:
        return np.zeros((size, 2))
    pull = np.zeros((size, size))
    np.add.at(pull, (sources, ends), weights)
    pull = np.maximum(pull + pull.T, 0.0)
    np.fill_diagonal(pull, 0.0)
    degree = 1.0 + (pull > 0).sum(axis=1)
    position = _spiral(np.argsort(-degree, kind="stable"))
    pull /= max(float(pull.max()), 1e-12)
    pull = np.where(pull > 0, 0.25 + pull, 0.0)
    for turn in range(ROUNDS):
        position = position + _moves(position, pull, degree, 0.12 * (1 - turn / ROUNDS) * math.sqrt(size))
    return apart(_fitted(position, boxes), boxes)


def _spiral(order: NDArray[np.int64]) -> Points:
    """The first of the order in the middle."""
    place = np.empty(len(order))
    place[order] = np.arange(len(order))
    radius = np.sqrt(place + 0.5)
    return np.stack((radius * np.cos(place * GOLDEN_ANGLE), radius * np.sin(place * GOLDEN_ANGLE)), axis=1)


def _moves(position: Points, pull: Points, degree: Points, most: float) -> Points:
    """What the forces move each circle by, at most so far."""
    x, y = position[:, 0], position[:, 1]
    across, down = x[:, None] - x[None, :], y[:, None] - y[None, :]
    distance = np.sqrt(across**2 + down**2) + 1e-9
    push = np.sqrt(degree[:, None] * degree[None, :]) / distance**2
    np.fill_diagonal(push, 0.0)
    push -= 1.5 * pull * np.log1p(distance) / distance
    force = np.stack(((push * across).sum(axis=1), (push * down).sum(axis=1)), axis=1)
    away = np.sqrt(x**2 + y**2)[:, None] + 1e-9
    force -= GRAVITY * position / away * np.sqrt(degree)[:, None]
    length = np.sqrt(force[:, :1] ** 2 + force[:, 1:] ** 2) + 1e-9
    moves: Points = force / length * np.minimum(length * 0.05, most)
    return moves


def _fitted(position: Points, boxes: Points) -> Points:
    """Turned so that the longest way lies across, and drawn out to a sheet on which the boxes have room."""
    centred = position - position.mean(axis=0)
    far = np.sqrt((centred**2).sum(axis=1, keepdims=True)) + 1e-9
    centred *= (far / far.max()) ** (SPREAD - 1)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    axes *= np.sign(axes[:, :1] + (axes[:, :1] == 0))  # which of two directions an axis points is the library's whim
    turned = centred @ axes.T
    extent = np.maximum(np.ptp(turned, axis=0), 1e-9)
    room = math.sqrt(float((4 * (boxes[:, 0] + 8) * (boxes[:, 1] + 8)).sum()) * ROOM / FLAT)
    sheet: Points = (turned / extent - turned.min(axis=0) / extent) * np.array([room, room * FLAT])
    return sheet


def apart(position: Points, boxes: Points) -> Points:
    """The same with boxes that cover one another pushed apart along the shorter way."""
    order = np.sign(np.arange(len(boxes))[:, None] - np.arange(len(boxes))[None, :])  # of two on one spot the later goes right
    room = [boxes[:, axis][:, None] + boxes[:, axis][None, :] + 4.0 for axis in (0, 1)]
    for _ in range(APART_ROUNDS):
        between = [position[:, axis][:, None] - position[:, axis][None, :] for axis in (0, 1)]
        over = [room[axis] - np.abs(between[axis]) for axis in (0, 1)]
        covers = (over[0] > 0) & (over[1] > 0)
        np.fill_diagonal(covers, False)
        if not covers.any():
            break
        across = over[0] < over[1]
        steps = []
        for axis, chosen in ((0, across), (1, ~across)):
            step = np.where(covers & chosen, over[axis] * np.where(between[axis] == 0, order, np.sign(between[axis])), 0.0)
            steps.append(0.5 * np.sign(step.sum(axis=1)) * np.abs(step).max(axis=1))
        position = position + np.stack(steps, axis=1)
    return position
