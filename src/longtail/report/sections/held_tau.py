"""Why τ is not where the held-out samples have it."""

from longtail.posthoc import TauChoice


def held_near_one_in_words(choice: TauChoice | None) -> str:
    """Why τ is near 1 and not where the held-out samples have it, or nothing if it is there."""
    if choice is None or choice.is_determined:
        return ""
    if choice.trust == 0:  # no move, or a criterion that no longer changes with τ
        return " The held-out samples do not determine τ, so it is 1, where the move is exact."
    between = ""
    if choice.low is not None and choice.high is not None:
        between = f" (95 % interval {choice.low:.3g} to {choice.high:.3g})"
    if choice.optimum == 1:
        return (
            " The held-out samples do not determine τ, so it is 1, where the move is exact: "
            f"none does better on them{between}."
        )
    return (
        " The held-out samples do not determine τ, so it was held near 1, where the move is exact: "
        f"they alone would have it at {choice.optimum:.3g}{between}."
    )
