"""Memory traffic of chains of operators and of attention, fused and unfused."""

from mlsys.unit_checks import count, positive, quantity_function


@quantity_function("byte", kernels=count(), tensor=positive("byte"))
def chain_bytes(kernels: int, tensor: float) -> float:
    """Return the memory traffic of a chain of element-wise operators that is executed as ``kernels`` kernels.

    Each kernel reads the tensor once and writes it once, however many operators it fuses:
    n unfused operators make 2n passes over the tensor, one fused kernel makes 2.

    Parameters
    ----------
    kernels
        Number of kernels; equal to the number of operators if nothing is fused.
    tensor
        Size of the tensor, byte.

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


@quantity_function("byte", tokens=count(), head_dim=count(), element_size=positive("byte"))
def standard_attention_bytes(tokens: int, head_dim: int, element_size: float) -> float:
    """Return the memory traffic of one attention head in three kernels, (4·N·d + 4·N²) elements.

    Queries, keys, values and the output are transferred once; the scores are written by the first
    product, read and written by the softmax and read by the second product.

    Parameters
    ----------
    tokens
        Number of queries and of keys, N.
    head_dim
        Width of a head, d.
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


@quantity_function(
    "byte", tokens=count(), head_dim=count(), element_size=positive("byte"), fast_memory=positive("byte")
)
def flash_attention_bytes(tokens: int, head_dim: int, element_size: float, fast_memory: float) -> float:
    """Return the memory traffic of one head of FlashAttention, which keeps blocks of the scores on the chip.

    A fast memory of M elements holds blocks of ⌈M / 4d⌉ keys and values. Each is read once; for
    each of the ⌈N / ⌈M / 4d⌉⌉ blocks the queries are read, and the partial output and two numbers per row
    (the running maximum of the scores and their sum) are read and written. The traffic grows as N²·d² / M.

    Parameters
    ----------
    tokens
        Number of queries and of keys, N.
    head_dim
        Width of a head, d.
    element_size
        Bytes per element.
    fast_memory
        Memory available for the blocks, byte; if it holds fewer than four rows, the block is one key.

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
    initial = tokens * head_dim + 2 * tokens  # initial writes: zero outputs and sums, minimum scores
    per_block = 3 * tokens * head_dim + 4 * tokens
    return (2 * tokens * head_dim + initial + blocks * per_block) * element_size
