package measure

// Profile writes the profile of [Figure].
var Profile = profile
