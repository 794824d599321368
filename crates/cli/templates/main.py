def run(text: str, limit: int = 10) -> dict:
    """Counts words.

    text: the text to count in
    limit: how many of its words to look at
    """
    words = text.split()[:limit]
    return {"words": len(words)}
