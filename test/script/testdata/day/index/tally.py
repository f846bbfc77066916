"""Tally counts things."""


def counted(n, what):
    return f"{n} {what}" + ("" if n == 1 else "s")
