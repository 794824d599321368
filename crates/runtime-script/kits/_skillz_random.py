"""Random generators in forks: those that nobody seeded are seeded anew, those that somebody seeded stay as they are.

Whether somebody did is not guessed: each seeding of `random.Random` is noted, and so is all entropy that `secrets`
hands out, from which numpy takes the seeds of generators that were given none.
"""

import gc
import random
import secrets
import sys
import weakref

_generators = {}
_entropy = set()
_seed, _setstate, _randbits = random.Random.seed, random.Random.setstate, secrets.randbits


def _note(generator, is_seeded):
    key = id(generator)
    _generators[key] = (weakref.ref(generator, lambda _: _generators.pop(key, None)), is_seeded)


def watch():
    """Begins to take notes: before the tool's module is imported."""

    def seed(self, a=None, version=2):
        _seed(self, a, version)
        _note(self, a is not None)

    def setstate(self, state):
        _setstate(self, state)
        _note(self, True)

    def randbits(k):
        number = _randbits(k)
        if len(_entropy) < 100_000:
            _entropy.add(number)
        return number

    random.Random.seed, random.Random.setstate, secrets.randbits = seed, setstate, randbits
    # The module's functions are methods of one generator, bound before.
    random.seed, random.setstate = random._inst.seed, random._inst.setstate


class Reseeding:
    """What has to be done in each fork; made once, after the import."""

    def __init__(self):
        random.Random.seed, random.Random.setstate, secrets.randbits = _seed, _setstate, _randbits
        live = [(reference(), is_seeded) for reference, is_seeded in _generators.values()]
        self._anew = [generator for generator, is_seeded in live if generator is not None and not is_seeded]
        # Python seeds this one anew after each fork, whoever seeded it.
        is_seeded = any(generator is random._inst and seeded for generator, seeded in live)
        self._kept = random.getstate() if is_seeded else None
        self._of_numpy = _of_numpy()

    def in_fork(self):
        if self._kept is not None:
            _setstate(random._inst, self._kept)
        for generator in self._anew:
            generator.seed()
        for generator in self._of_numpy:
            if hasattr(generator, "seed"):
                generator.seed()
            else:
                generator.state = type(generator)().state


def _of_numpy():
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is None:
        return []
    kinds = (numpy_random.RandomState, numpy_random.Generator)
    anew = {}
    for thing in [numpy_random.mtrand._rand] + gc.get_objects():
        if type(thing) in kinds:
            bits = thing._bit_generator if type(thing) is kinds[0] else thing.bit_generator
        elif isinstance(thing, numpy_random.BitGenerator):
            bits = thing
        else:
            continue
        sequence = getattr(bits, "seed_seq", None) or getattr(bits, "_seed_seq", None)
        if getattr(sequence, "entropy", None) in _entropy:
            anew[id(bits)] = thing if type(thing) is kinds[0] else anew.get(id(bits), bits)
    return list(anew.values())
