"""Why τ is not where the held-out samples have it."""

from longtail.posthoc import TauChoice


def held_near_one_in_words(choice: TauChoice | None) -> str:
    """Why τ is near 1 and not where the held-out samples have it, or nothing if it is there."""
    if choice is None or choice.is_determined:
        return ""
    if choice.trust == 0:
        return " The target is what they carry already, so that every τ does the same."
    between = ""
    if choice.low is not None and choice.high is not None:
        between = f" (95 % interval {choice.low:.3g} to {choice.high:.3g})"
    return (
        " The held-out samples do not determine τ, so it was held near 1, where the move is exact: "
        f"they alone would have it at {choice.optimum:.3g}{between}."
    )
