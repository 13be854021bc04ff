// Package userfiles finds, checks and tidies this user's own files: those in the cache, and
// those that no other user may replace.
package userfiles
