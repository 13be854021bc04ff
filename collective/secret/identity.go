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
	// ErrOtherKey means that the peer's certificate was not made from our Key.
	ErrOtherKey = errors.New("it uses a different key")
	// ErrOtherPeer means that a different process answered than the one dialled.
	ErrOtherPeer = errors.New("another process answered")
	// ErrClock means that the peer's certificate is not valid now. Processes issue their
	// certificates when they start, valid from the day before.
	ErrClock = errors.New("the clocks of the two machines differ by more than a day; correct them")
)

const (
	skew     = 24 * time.Hour       // largest permitted difference between clocks
	lifetime = 5 * 365 * skew       // of a certificate; longer than any process runs
	version  = tls.VersionTLS13     // the only TLS version
	authName = "ringtrain key (CA)" // name of the authority; reveals nothing about the Key
)

// An Identity identifies one start of a process and can prove it to processes with the
// same Key. It is immutable and safe for concurrent use.
type Identity struct {
	roots  *x509.CertPool
	own    tls.Certificate
	server *tls.Config
}

// Identity makes the certificate for one start of a process: a fresh Ed25519 key
// pair, with name and nonce signed by the Key's authority. name must be valid UTF-8
// and not empty.
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
		return nil, fmt.Errorf("secret: cannot read random bytes: %w", err)
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
	id.server.ClientAuth = tls.RequireAnyClientCert // VerifyConnection checks it
	return id, nil
}

// authority returns the certificate authority of a Key. All holders of the Key derive the
// same one, so it is never transmitted.
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
		NotAfter:              time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // RFC 5280: no expiry
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true, // no intermediate authorities
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

// Server returns the configuration for accepting connections (tls.Server). The handshake
// fails with [ErrOtherKey] unless the dialler has the same Key. Afterwards [Peer] tells
// who the dialler is.
func (id *Identity) Server() *tls.Config { return id.server }

// Client returns the configuration for dialling (tls.Client) one start of one
// process. The handshake fails with [ErrOtherKey] or [ErrOtherPeer] if a different
// process answers.
func (id *Identity) Client(name string, nonce uint64) *tls.Config {
	return id.config(func(cs tls.ConnectionState) error {
		gotName, gotNonce, err := id.peer(cs)
		switch {
		case err != nil:
			return err
		case gotName != name:
			return fmt.Errorf("%w: this is %s, not %s", ErrOtherPeer, gotName, name)
		case gotNonce != nonce:
			return fmt.Errorf("%w: %s was started again since", ErrOtherPeer, name)
		}
		return nil
	})
}

// config returns what both sides have in common. The names that crypto/tls can check are
// host names, so its own verification is off. It calls verify in every handshake, which
// checks everything.
func (id *Identity) config(verify func(tls.ConnectionState) error) *tls.Config {
	return &tls.Config{
		MinVersion:                  version,
		MaxVersion:                  version,
		Certificates:                []tls.Certificate{id.own},
		InsecureSkipVerify:          true,
		VerifyConnection:            verify,
		SessionTicketsDisabled:      true, // Links are few and long-lived
		DynamicRecordSizingDisabled: true, // messages are wanted whole, so small first records gain nothing
	}
}

// peer verifies the certificate of the other side and returns its name and nonce.
func (id *Identity) peer(cs tls.ConnectionState) (name string, nonce uint64, err error) {
	if len(cs.PeerCertificates) != 1 {
		return "", 0, fmt.Errorf("%w: it presents %d certificates instead of 1", ErrOtherKey, len(cs.PeerCertificates))
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

// Peer returns the name and nonce in the certificate of the other side. They are proven
// only if the handshake succeeded under [Identity.Server] or [Identity.Client]; otherwise
// anybody may have made them up.
func Peer(cs tls.ConnectionState) (name string, nonce uint64, err error) {
	if len(cs.PeerCertificates) == 0 {
		return "", 0, ErrOtherKey
	}
	subject := cs.PeerCertificates[0].Subject
	nonce, err = strconv.ParseUint(subject.SerialNumber, 16, 64)
	if err != nil || subject.CommonName == "" {
		return "", 0, fmt.Errorf("%w: its certificate contains no name", ErrOtherPeer)
	}
	return subject.CommonName, nonce, nil
}
