from shop.prices import total


def test_a_total():
    assert total([(250, 2), (100, 1)]) == 600


def test_a_discount():
    assert total([(1000, 2)], discount=25) == 1500
