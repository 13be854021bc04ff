package secret

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"time"
)

var (
	// ErrOtherKey is what errors.Is finds where the other side shows a
	// certificate that was not made from the own Key.
	ErrOtherKey = errors.New("it has another key")
	// ErrOtherPeer is what errors.Is finds where another process answers than
	// the one that was meant.
	ErrOtherPeer = errors.New("another process answered")
	// ErrClock is what errors.Is finds where a certificate is not valid now.
	// Processes make theirs when they start, valid from the day before.
	ErrClock = errors.New("the clocks of the two machines differ by more than a day")
)

const (
	skew     = 24 * time.Hour       // that clocks may differ
	lifetime = 5 * 365 * skew       // of a certificate: longer than any process
	version  = tls.VersionTLS13     // of TLS, the only one
	authName = "ringtrain key (CA)" // the authority's name; it says nothing about the Key
)

// An Identity is who one start of a process is, and the means to prove it to
// processes with the same Key. It is immutable: use it from anywhere.
type Identity struct {
	roots  *x509.CertPool
	own    tls.Certificate
	server *tls.Config
}

// Identity makes the certificate of one start of a process: a fresh Ed25519
// key pair, with name and nonce in what the authority of the Key signs. name
// is valid UTF-8 and not empty.
func (k Key) Identity(name string, nonce uint64) (*Identity, error) {
	if name == "" {
		return nil, errors.New("secret: an identity needs a name")
	}
	authority, signer, err := k.authority()
	if err != nil {
		return nil, err
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("secret: no randomness: %w", err)
	}
	now := time.Now()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		Subject:     pkix.Name{CommonName: name, SerialNumber: strconv.FormatUint(nonce, 16)},
		NotBefore:   now.Add(-skew),
		NotAfter:    now.Add(lifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, authority, public, signer)
	if err != nil {
		return nil, fmt.Errorf("secret: certificate of %q: %w", name, err)
	}
	id := &Identity{roots: x509.NewCertPool(), own: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}}
	id.roots.AddCert(authority)
	id.server = id.config(func(cs tls.ConnectionState) error {
		_, _, err := id.peer(cs)
		return err
	})
	id.server.ClientAuth = tls.RequireAnyClientCert // and VerifyConnection looks at it
	return id, nil
}

// authority is the certificate authority of a Key. All who have the Key make
// the same, so nobody has to hand it round.
func (k Key) authority() (*x509.Certificate, crypto.Signer, error) {
	seed, err := k.derive("ringtrain v1 authority")
	if err != nil {
		return nil, nil, err
	}
	signer := ed25519.NewKeyFromSeed(seed)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: authName},
		NotBefore:             time.Unix(0, 0),
		NotAfter:              time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // RFC 5280: never
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true, // no other authority below it
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		return nil, nil, fmt.Errorf("secret: the authority's certificate: %w", err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("secret: the authority's certificate: %w", err)
	}
	return c, signer, nil
}

// Server is for accepting connections (tls.Server). The handshake fails with
// [ErrOtherKey] unless the dialler has the same Key; [Peer] tells who it is.
func (id *Identity) Server() *tls.Config { return id.server }

// Client is for dialling (tls.Client) one start of one process. The handshake
// fails with [ErrOtherKey] or [ErrOtherPeer] where somebody else answers.
func (id *Identity) Client(name string, nonce uint64) *tls.Config {
	return id.config(func(cs tls.ConnectionState) error {
		gotName, gotNonce, err := id.peer(cs)
		switch {
		case err != nil:
			return err
		case gotName != name:
			return fmt.Errorf("%w: this is %s, not %s", ErrOtherPeer, gotName, name)
		case gotNonce != nonce:
			return fmt.Errorf("%w: %s has been started again since", ErrOtherPeer, name)
		}
		return nil
	})
}

// config has what both sides do alike. The names that crypto/tls knows how to
// check are those of hosts, so it is told to check nothing: verify, which it
// calls in every handshake, checks everything.
func (id *Identity) config(verify func(tls.ConnectionState) error) *tls.Config {
	return &tls.Config{
		MinVersion:                  version,
		MaxVersion:                  version,
		Certificates:                []tls.Certificate{id.own},
		InsecureSkipVerify:          true,
		VerifyConnection:            verify,
		SessionTicketsDisabled:      true, // Links are few and long
		DynamicRecordSizingDisabled: true, // a message is wanted whole, no browser waits for its first bytes
	}
}

// peer verifies the certificate of the other side and tells whose it is.
func (id *Identity) peer(cs tls.ConnectionState) (name string, nonce uint64, err error) {
	if len(cs.PeerCertificates) != 1 {
		return "", 0, fmt.Errorf("%w: it shows %d certificates, not 1", ErrOtherKey, len(cs.PeerCertificates))
	}
	_, err = cs.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: id.roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "", 0, ErrClock
	case err != nil:
		return "", 0, ErrOtherKey
	}
	return Peer(cs)
}

// Peer tells whom the certificate of the other side names. It says so of
// connections whose handshake went well under [Identity.Server] or
// [Identity.Client]; of others it says what anybody may have made up.
func Peer(cs tls.ConnectionState) (name string, nonce uint64, err error) {
	if len(cs.PeerCertificates) == 0 {
		return "", 0, ErrOtherKey
	}
	subject := cs.PeerCertificates[0].Subject
	nonce, err = strconv.ParseUint(subject.SerialNumber, 16, 64)
	if err != nil || subject.CommonName == "" {
		return "", 0, fmt.Errorf("%w: its certificate names nobody", ErrOtherPeer)
	}
	return subject.CommonName, nonce, nil
}
