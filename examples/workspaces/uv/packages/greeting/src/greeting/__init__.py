def greet(who: str) -> str:
    return f"Hello from {who}"
