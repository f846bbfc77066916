// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package certfile serves a certificate as two files have it now: whoever renews it writes the files, and no
// server has to be restarted.
package certfile

import (
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"sandpit.dev/fault"
)

// lookEvery is how often the files are looked at, at most: at handshakes.
const lookEvery = time.Second

// Pair is a certificate and its key, in PEM. It is safe for concurrent use.
type Pair struct {
	cert, key string
	log       *slog.Logger
	now       func() time.Time

	mu      sync.Mutex
	current *tls.Certificate
	read    [2]stamp  // of the files, when they were read last
	looked  time.Time // when they were looked at last
}

// stamp tells versions of a file apart.
type stamp struct {
	size     int64
	modified time.Time
	info     fs.FileInfo // nil: it could not be looked at
}

func (s stamp) same(o stamp) bool {
	if s.info == nil || o.info == nil {
		return s.info == nil && o.info == nil
	}
	return s.size == o.size && s.modified.Equal(o.modified) && os.SameFile(s.info, o.info)
}

func stampOf(path string) stamp {
	info, err := os.Stat(path) // of what a link leads to: renewals change links
	if err != nil {
		return stamp{}
	}
	return stamp{size: info.Size(), modified: info.ModTime(), info: info}
}

// Open reads a certificate, which may be followed by those between it and its authority, and its key. The
// error is fault.Invalid and says which file is not right.
func Open(cert, key string, log *slog.Logger) (*Pair, error) {
	p := &Pair{cert: cert, key: key, log: log, now: time.Now}
	p.read = [2]stamp{stampOf(cert), stampOf(key)}
	var err error
	if p.current, err = Read(cert, key); err != nil {
		return nil, err
	}
	p.looked = p.now()
	return p, nil
}

// Read reads a certificate and its key from files in PEM, as [Open] does. Leaf is set.
func Read(cert, key string) (*tls.Certificate, error) {
	certs, err := os.ReadFile(cert)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the file of the certificate, %s, cannot be read", cert)
	}
	secret, err := os.ReadFile(key)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the file of the certificate's key, %s, cannot be read", key)
	}
	pair, err := tls.X509KeyPair(certs, secret)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the certificate in %s with the key in %s cannot be used: %v", cert, key, err).
			WithRemedy("both are PEM: the certificate first, then those between it and its authority; the key is its own, and not encrypted")
	}
	if pair.Leaf == nil {
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "the certificate in %s cannot be read", cert)
		}
	}
	return &pair, nil
}

// GetCertificate is [tls.Config.GetCertificate]. Where the files have changed and are not right, as between two
// writes, the pair before stays.
func (p *Pair) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if d := now.Sub(p.looked); d >= 0 && d < lookEvery {
		return p.current, nil
	}
	p.looked = now
	stamps := [2]stamp{stampOf(p.cert), stampOf(p.key)}
	if stamps[0].same(p.read[0]) && stamps[1].same(p.read[1]) {
		return p.current, nil
	}
	p.read = stamps
	next, err := Read(p.cert, p.key)
	if err != nil {
		p.log.Error("the certificate was changed and cannot be used; the one before stays", "error", err)
		return p.current, nil
	}
	p.current = next
	p.log.Info("the certificate was read again", "file", p.cert, "until", next.Leaf.NotAfter)
	return next, nil
}

// Leaf returns the certificate that is served now.
func (p *Pair) Leaf() *x509.Certificate {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current.Leaf
}
