//race:skip it measures
package measure

// Profile writes the profile of [Figure].
var Profile = profile
