"""The feed of a loop: no event is passed over on the way to the model."""

from manul.service.engine.feed import Feed
from manul.service.store import Event


def test_an_event_that_comes_after_those_in_the_store_were_counted_is_not_passed_over():
    feed, counted = Feed(), 10
    feed.add([(Event(11, 7, "loss", 0.5, 0.0), None)])  # not queued, since the feed is behind
    feed.keep_up(counted, counted)
    assert feed.behind
    feed.keep_up(11, 11)
    assert not feed.behind
