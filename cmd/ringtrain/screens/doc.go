// Package screens tests the ringtrain command as its users see it. The tests are not in
// package main: because of the profile there, go test would compile every package a third
// time.
package screens
