from shop.feed import follow


def test_every_price_comes_once():
    def say(what):
        print("feed:", what, flush=True)

    seen = []
    for price in follow(say):
        say(price)
        seen.append(price)
    assert seen == [100 * (i + 1) for i in range(len(seen))], seen
