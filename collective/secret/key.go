package secret

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Size is the number of bytes of a Key.
const Size = 32

// A Key is what the processes of a job have in common and nobody else knows.
// The zero value is no key. Printing one, by any verb of fmt or by log/slog,
// does not show it; only Text does.
type Key struct{ b [Size]byte }

// New draws a Key.
func New() (Key, error) {
	var k Key
	if _, err := rand.Read(k.b[:]); err != nil {
		return Key{}, fmt.Errorf("secret: no randomness: %w", err)
	}
	return k, nil
}

// ErrNotKey is what errors.Is finds where a text is not that of a Key.
var ErrNotKey = errors.New("not a key: it must be 32 bytes as base64 (44 characters) or hex (64)")

// ParseKey reads the text form of a Key: base64, as Text writes it, or hex.
// Space around it does not matter. The error does not contain the text.
func ParseKey(text string) (Key, error) {
	var k Key
	text = strings.TrimSpace(text)
	decode := base64.StdEncoding.Strict().DecodeString
	if len(text) == hex.EncodedLen(Size) {
		decode = hex.DecodeString
	}
	b, err := decode(text)
	if err != nil || len(b) != Size {
		return Key{}, ErrNotKey
	}
	copy(k.b[:], b)
	if k.zero() {
		return Key{}, fmt.Errorf("%w, and not all zero", ErrNotKey)
	}
	return k, nil
}

// Text is the Key itself, as 44 characters of base64. It is for the file that
// keeps it and for nothing else.
func (k Key) Text() string { return base64.StdEncoding.EncodeToString(k.b[:]) }

// String does not show the Key.
func (k Key) String() string { return "a secret key" }

// Format does not show the Key either, whatever the verb.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// GossipKey is the key of the gossip: 32 bytes, for AES-256.
func (k Key) GossipKey() ([]byte, error) { return k.derive("ringtrain v1 gossip") }

func (k Key) zero() bool { return k == Key{} }

// derive makes 32 bytes for one use. What they are says nothing about the Key
// or about what is derived for other uses.
func (k Key) derive(use string) ([]byte, error) {
	if k.zero() {
		return nil, ErrNotKey
	}
	b, err := hkdf.Key(sha256.New, k.b[:], nil, use, Size)
	if err != nil {
		return nil, fmt.Errorf("secret: deriving a key: %w", err)
	}
	return b, nil
}
