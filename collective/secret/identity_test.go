package secret_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/secret"
)

func identity(t testing.TB, k secret.Key, name string, nonce uint64) *secret.Identity {
	id, err := k.Identity(name, nonce)
	require.NoError(t, err)
	return id
}

// handshake runs a handshake between two sides. It returns the peer that the
// server saw, and both errors.
func handshake(t *testing.T, server, client *tls.Config) (peer string, ofServer, ofClient error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	b, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	a, err := ln.Accept()
	require.NoError(t, err)
	defer a.Close()
	defer b.Close()
	for _, c := range []net.Conn{a, b} {
		require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	}
	s, c := tls.Server(a, server), tls.Client(b, client)
	done := make(chan error, 1)
	go func() {
		err := s.Handshake()
		if err == nil {
			_, err = s.Write([]byte("hello"))
		}
		if err != nil {
			_ = a.Close()
		}
		done <- err
	}()
	ofClient = c.Handshake()
	if ofClient == nil {
		_, ofClient = io.ReadFull(c, make([]byte, 5)) // in TLS 1.3 the server checks after the client
	}
	_ = b.Close()
	ofServer = <-done
	if ofServer == nil {
		name, nonce, err := secret.Peer(s.ConnectionState())
		require.NoError(t, err)
		peer = fmt.Sprint(name, " ", nonce)
		require.EqualValues(t, tls.VersionTLS13, s.ConnectionState().Version)
	}
	return peer, ofServer, ofClient
}

func TestHandshake(t *testing.T) {
	k := key(t)
	a, b := identity(t, k, "vm1/0", 1<<63), identity(t, k, "vmä-2/1", 7)
	peer, ofServer, ofClient := handshake(t, a.Server(), b.Client("vm1/0", 1<<63))
	require.NoError(t, ofServer)
	require.NoError(t, ofClient)
	require.Equal(t, "vmä-2/1 7", peer)

	_, _, err := handshake(t, a.Server(), b.Client("vm1/1", 1<<63))
	require.ErrorIs(t, err, secret.ErrOtherPeer)
	require.ErrorContains(t, err, "this is vm1/0, not vm1/1")
	_, _, err = handshake(t, a.Server(), b.Client("vm1/0", 2))
	require.ErrorIs(t, err, secret.ErrOtherPeer)
	require.ErrorContains(t, err, "started again")

	_, err = k.Identity("", 1)
	require.Error(t, err)
	_, err = k.Identity("a\xffb", 1)
	require.Error(t, err)
}

// A certificate is valid from the day before, because clocks differ.
func TestCertificateBeginsTheDayBefore(t *testing.T) {
	own := identity(t, key(t), "a", 1).Server().Certificates[0].Certificate[0]
	c, err := x509.ParseCertificate(own)
	require.NoError(t, err)
	const day = 24 * time.Hour
	require.Equal(t, (5*365+1)*day, c.NotAfter.Sub(c.NotBefore))
}

// A certificate without a name or a number does not identify a member.
func TestPeerWithoutAName(t *testing.T) {
	for _, c := range []struct {
		subject pkix.Name
		want    error
	}{
		{pkix.Name{CommonName: "a", SerialNumber: "1f"}, nil},
		{pkix.Name{CommonName: "a"}, secret.ErrOtherPeer},
		{pkix.Name{SerialNumber: "1f"}, secret.ErrOtherPeer},
	} {
		_, _, err := secret.Peer(tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Subject: c.subject}}})
		require.ErrorIs(t, err, c.want, "%v", c.subject)
	}
	_, _, err := secret.Peer(tls.ConnectionState{})
	require.ErrorIs(t, err, secret.ErrOtherKey)
}

func TestOtherKey(t *testing.T) {
	a, b := identity(t, key(t), "a", 1), identity(t, key(t), "b", 2)
	_, ofServer, ofClient := handshake(t, a.Server(), b.Client("a", 1))
	require.Error(t, ofServer)
	require.ErrorIs(t, ofClient, secret.ErrOtherKey)

	// The server refuses a dialler that does not check the identity of the server.
	careless := b.Client("a", 1)
	careless.VerifyConnection = nil
	_, ofServer, ofClient = handshake(t, a.Server(), careless)
	require.ErrorIs(t, ofServer, secret.ErrOtherKey)
	require.Error(t, ofClient)
	careless.Certificates = nil
	_, ofServer, ofClient = handshake(t, a.Server(), careless)
	require.Error(t, ofServer, "no certificate")
	require.Error(t, ofClient)
	careless = b.Client("a", 1)
	careless.MinVersion, careless.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	_, ofServer, _ = handshake(t, a.Server(), careless)
	require.ErrorContains(t, ofServer, "version")
}

// forge makes a certificate for "a" with nonce 1, signed by parent or, if parent is
// nil, by itself.
func forge(t *testing.T, parent *tls.Certificate, change func(*x509.Certificate)) *tls.Config {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(5), Subject: pkix.Name{CommonName: "a", SerialNumber: "1"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	if change != nil {
		change(template)
	}
	by, signer, chain := template, any(private), [][]byte(nil)
	if parent != nil {
		by, err = x509.ParseCertificate(parent.Certificate[0])
		require.NoError(t, err)
		signer, chain = parent.PrivateKey, parent.Certificate
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by, public, signer)
	require.NoError(t, err)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: append([][]byte{der}, chain...), PrivateKey: private}},
		ClientAuth: tls.RequestClientCert, InsecureSkipVerify: true}
}

// A process can prove its own identity and nothing else. It cannot sign for others, nor
// use a certificate that only looks right.
func TestForgery(t *testing.T) {
	k := key(t)
	good := identity(t, k, "b", 2)
	process := good.Server().Certificates[0]
	for name, server := range map[string]*tls.Config{
		"self-signed":  forge(t, nil, nil),
		"by a process": forge(t, &process, nil),
		"as authority": forge(t, nil, func(c *x509.Certificate) {
			c.Subject, c.IsCA, c.BasicConstraintsValid = pkix.Name{CommonName: "ringtrain key (CA)"}, true, true
		}),
	} {
		_, _, err := handshake(t, server, good.Client("a", 1))
		require.ErrorIs(t, err, secret.ErrOtherKey, name)
		_, ofServer, _ := handshake(t, good.Server(), &tls.Config{Certificates: server.Certificates, InsecureSkipVerify: true})
		require.ErrorIs(t, ofServer, secret.ErrOtherKey, name)
	}
	old := forge(t, nil, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	_, _, err := handshake(t, old, good.Client("a", 1))
	require.ErrorIs(t, err, secret.ErrClock)
	_, _, err = secret.Peer(tls.ConnectionState{})
	require.True(t, errors.Is(err, secret.ErrOtherKey))
}
