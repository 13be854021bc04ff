// Package screens tests the ringtrain command as its users see it. The tests are not in
// package main, because with the profile there, go test would compile all packages for
// them once more.
package screens
