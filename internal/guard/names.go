package guard

// Surprises are what happens in browsers without being asked for, as the feed
// tells it. A start cannot do without who tells it, and so it is no dispensable room.
const Surprises = "news of sessions"
