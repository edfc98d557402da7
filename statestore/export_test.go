package statestore

// LastDrain is lastDrain, for a case that no write of this version leads to.
var LastDrain = lastDrain
