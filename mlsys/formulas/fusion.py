"""Passes over memory that fusion saves, and the traffic of attention with and without tiles."""

from mlsys.door import count, door, positive


@door("byte", kernels=count(), tensor=positive("byte"))
def chain_bytes(kernels: int, tensor: float) -> float:
    """Return the traffic of a chain of element-wise operators that runs as so many kernels.

    Each kernel reads the tensor once and writes it once, however many operators are in it:
    n operators one by one make 2n passes, fused into one kernel 2.

    Parameters
    ----------
    kernels
        Into how many kernels the chain is cut; as many as operators where nothing is fused.
    tensor
        Size of the tensor that passes through, byte.

    Returns
    -------
    Quantity
        byte.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> tensor = Q_(4, "MiB")
    >>> print(chain_bytes(3, tensor).to("MiB"), chain_bytes(1, tensor).to("MiB"))
    24 MiB 8 MiB
    """
    return 2 * kernels * tensor


@door("byte", tokens=count(), head_dim=count(), element_size=positive("byte"))
def standard_attention_bytes(tokens: int, head_dim: int, element_size: float) -> float:
    """Return the traffic of one head of attention in three kernels, (4·N·d + 4·N²) elements.

    Queries, keys, values and the output cross memory once; the scores are written by the first
    product, read and written by the softmax and read by the second product.

    Parameters
    ----------
    tokens
        N, queries and keys.
    head_dim
        d, width of a head.
    element_size
        Bytes per element.

    Returns
    -------
    Quantity
        byte.

    References
    ----------
    T. Dao et al., FlashAttention, NeurIPS 2022 (arXiv:2205.14135), algorithm 0 and theorem 2.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(standard_attention_bytes(2048, 64, Q_(2, "byte")).to("MB"))
    34.603008 MB
    """
    return 4 * (tokens * head_dim + tokens * tokens) * element_size


@door("byte", tokens=count(), head_dim=count(), element_size=positive("byte"), fast_memory=positive("byte"))
def flash_attention_bytes(tokens: int, head_dim: int, element_size: float, fast_memory: float) -> float:
    """Return the traffic of one head of FlashAttention, which keeps blocks of the scores on the chip.

    A fast memory of M elements holds blocks of ⌈M / 4d⌉ keys and values. Each is read once; for
    each of the ⌈N / ⌈M / 4d⌉⌉ blocks all queries, the unfinished output and two numbers a row
    (the largest score so far and the sum) pass by. So the traffic grows with N²·d² / M.

    Parameters
    ----------
    tokens
        N, queries and keys.
    head_dim
        d, width of a head.
    element_size
        Bytes per element.
    fast_memory
        What the blocks may fill, byte; with room for fewer than four rows, one key at a time is counted.

    Returns
    -------
    Quantity
        byte.

    References
    ----------
    T. Dao et al., FlashAttention, NeurIPS 2022 (arXiv:2205.14135), algorithm 1 and theorem 2.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> half = Q_(2, "byte")
    >>> print(flash_attention_bytes(2048, 64, half, Q_(164, "KiB")).to("MB"))
    6.414336 MB
    """
    keys = -(-fast_memory / element_size // (4 * head_dim))
    blocks = -(-tokens // keys)
    started = tokens * head_dim + 2 * tokens  # an empty output, no sum, the smallest score
    passing = 3 * tokens * head_dim + 4 * tokens
    return (2 * tokens * head_dim + started + blocks * passing) * element_size
