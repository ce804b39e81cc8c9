"""A slow simulator of a language-model server: plain Python, one object for each sequence, every iteration written out.

It shares nothing with the package but the meaning of the settings.
"""

from dataclasses import dataclass, field
from fractions import Fraction


@dataclass(eq=False)
class Sequence:
    number: int
    arrival: Fraction
    prompt: int
    output: int
    generated: int = 0
    cached: int = 0  # tokens in the cache, when its prompt is finished
    to_prefill: int = 0
    prefilled: int = 0
    blocks: int = 0
    swapped: bool = False
    begin: Fraction | None = None
    first: Fraction | None = None
    end: Fraction | None = None
    preemptions: int = 0
    found: int = 0  # tokens of the prompt that are in the shared prefix

    def __post_init__(self):
        self.to_prefill = self.prompt

    @property
    def decoding(self):
        return self.prefilled == self.to_prefill and not self.swapped


@dataclass(eq=False)
class Replica:
    settings: object
    step: object
    pair_seconds: Fraction
    now: Fraction = Fraction(0)
    began: Fraction = Fraction(0)
    waiting: list = field(default_factory=list)
    running: list = field(default_factory=list)
    ended: list = field(default_factory=list)
    iterations: int = 0
    prefilled: int = 0
    most_blocks: int = 0
    block_seconds: Fraction = Fraction(0)
    busy: Fraction = Fraction(0)

    @property
    def used(self):
        return sum(each.blocks for each in self.running)

    def outstanding(self, time):
        """Return how many requests have not ended at ``time``."""
        return len(self.waiting) + len(self.running) + sum(each.end > time for each in self.ended)

    def advance(self, until):
        while (until is None or self.now < until) and (self.waiting or self.running):
            self.iterate()

    def need(self, sequence):
        tokens = sequence.cached if sequence.swapped else sequence.to_prefill
        if self.settings.preemption == "reserve":
            tokens = sequence.prompt + sequence.output - 1
        return -(-(tokens - sequence.found) // self.settings.block_size)

    def admissible(self):
        if not self.waiting or len(self.running) >= self.settings.max_batch:
            return False
        left = self.settings.blocks - self.settings.shared_prefix // self.settings.block_size
        spare = int(self.settings.watermark * self.settings.blocks) if self.running else 0
        if self.settings.preemption == "reserve":
            spare = 0
        return self.used + self.need(self.waiting[0]) <= left - spare

    def preempt(self):
        victim = self.running.pop()
        victim.preemptions += 1
        moved = 0
        if not victim.decoding:
            victim.prefilled = 0
        elif self.settings.preemption == "swap":
            victim.swapped, moved = True, victim.blocks
        else:
            victim.to_prefill, victim.prefilled = victim.prompt + victim.generated, 0
        victim.blocks = 0
        self.waiting.insert(0, victim)
        return moved

    def iterate(self):
        settings, size = self.settings, self.settings.block_size
        left = settings.blocks - settings.shared_prefix // size
        prompts_only = not settings.chunked_prefill and self.admissible()
        moved, preempted = 0, False
        decoding = []
        if not prompts_only:
            while True:
                decoding = [each for each in self.running if each.decoding]
                growing = [each for each in decoding if each.cached + 1 - each.found > each.blocks * size]
                if self.used + len(growing) <= left:
                    break
                moved += self.preempt()
                preempted = True
            for each in growing:
                each.blocks += 1
        room = settings.token_budget - len(decoding)
        chunks = []
        for each in self.running:
            if not each.decoding:
                chunks.append((each, min(each.to_prefill - each.prefilled, room)))
        back = []
        room -= sum(part for _, part in chunks)
        while (prompts_only or settings.chunked_prefill) and not preempted and self.admissible():
            if any(each.prefilled + part < each.to_prefill for each, part in chunks):
                break
            new = self.waiting[0]
            if new.swapped:
                moved += self.need(new)
                back.append(new)
            elif settings.chunked_prefill:
                if room <= 0:
                    break
                new.prefilled = new.found
                chunks.append((new, min(new.to_prefill - new.found, room)))
            else:
                if room <= 0 or (chunks and new.to_prefill - new.found > room):
                    break
                new.prefilled = new.found
                chunks.append((new, new.to_prefill - new.found))
            if not new.swapped:
                room -= chunks[-1][1]
            new.blocks = self.need(new)
            new.begin = self.now if new.begin is None else new.begin
            self.running.append(self.waiting.pop(0))
        used = self.used
        assert used <= left
        tokens = sum(part for _, part in chunks)
        span = moved * Fraction(settings.swap_seconds)
        if tokens or decoding:
            context = sum(each.cached + 1 for each in decoding)
            span += Fraction(self.step(tokens, len(decoding), context))
        for each, part in chunks:
            span += self.pair_seconds * sum(range(each.prefilled + 1, each.prefilled + part + 1))
        self.began, self.now = self.now, self.now + span
        self.busy += span
        self.block_seconds += used * span
        self.most_blocks = max(self.most_blocks, used)
        self.iterations += 1
        self.prefilled += tokens
        for each in decoding:
            each.cached += 1
            each.generated += 1
        for each in back:
            each.swapped = False
        for each, part in chunks:
            each.prefilled += part
            if each.decoding:
                each.cached = each.to_prefill
                each.generated += 1
                each.first = self.now if each.first is None else each.first
        for each in [one for one in self.running if one.generated == one.output]:
            each.end, each.blocks = self.now, 0
            self.running.remove(each)
            self.ended.append(each)


def slow_simulation(requests, step, settings, pair_seconds=0.0):
    """Return the sequences and the replicas after all requests have ended; times are exact fractions."""
    replicas = [Replica(settings, step, Fraction(pair_seconds)) for _ in range(settings.replicas)]
    sequences = [
        Sequence(number, Fraction(float(arrival)), int(prompt), int(output))
        for number, (arrival, prompt, output) in enumerate(
            zip(requests.arrival, requests.prompt, requests.output, strict=True)
        )
    ]
    for each in sequences:  # block by block: a block is found if it is whole, shared, and not the end of the prompt
        while (
            each.found + settings.block_size <= settings.shared_prefix
            and each.found + settings.block_size < each.prompt
        ):
            each.found += settings.block_size
    homes = []
    for sequence in sequences:
        for replica in replicas:
            replica.advance(sequence.arrival)
        if settings.routing == "least-loaded":
            loads = [replica.outstanding(sequence.arrival) for replica in replicas]
            home = loads.index(min(loads))
        else:
            home = sequence.number % len(replicas)
        replica = replicas[home]
        if not replica.waiting and not replica.running:
            replica.now = max(replica.now, sequence.arrival)
        replica.waiting.append(sequence)
        homes.append(home)
    for replica in replicas:
        replica.advance(None)
    return sequences, replicas, homes
