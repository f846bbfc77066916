"""Prices are in cents."""


def total(items, discount=0):
    """What items, each a price and how many of it, cost together with a discount in percent."""
    whole = sum(price * count for price, count in items)
    return whole - discount
