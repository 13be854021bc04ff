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

// Size is the number of bytes in a Key.
const Size = 32

// A Key is the secret that the processes of a job share. The zero value is not a
// valid key. Printing a Key, with any verb of fmt or with log/slog, does not reveal
// it; only Text does.
type Key struct{ b [Size]byte }

// New returns a random Key.
func New() Key {
	var k Key
	_, _ = rand.Read(k.b[:]) // never fails, see crypto/rand
	return k
}

// ErrNotKey means that a text is not a Key.
var ErrNotKey = errors.New("not a key: a key is 32 bytes in base64 (44 characters) or hex (64 characters)")

// ParseKey reads the text form of a Key: base64, as Text writes it, or hex. It ignores
// surrounding space. The error does not contain the text.
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
		return Key{}, fmt.Errorf("%w, and not all zeros", ErrNotKey)
	}
	return k, nil
}

// Text returns the Key itself, as 44 characters of base64. Use it only for the file that
// stores the Key.
func (k Key) Text() string { return base64.StdEncoding.EncodeToString(k.b[:]) }

// String does not reveal the Key.
func (k Key) String() string { return "a secret key" }

// Format does not reveal the Key either, whatever the verb.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// GossipKey returns the key that encrypts gossip: 32 bytes, for AES-256.
func (k Key) GossipKey() ([]byte, error) { return k.derive("ringtrain v1 gossip") }

func (k Key) zero() bool { return k == Key{} }

// derive returns 32 bytes for one purpose. They reveal nothing about the Key or about
// other derived keys.
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
