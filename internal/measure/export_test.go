package measure

// Profile is what [Figure] takes a profile with.
var Profile = profile
