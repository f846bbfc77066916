// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"unicode"

	"sandpit.dev/engine/check"
	"sandpit.dev/sandbox"
)

// login is who asks a repository's server.
type login struct{ user, password string }

// tokenUser goes with a token: servers that take one look at no user.
const tokenUser = "git"

// Bounds of a login and of authorities, in bytes. Some copies of a login have to fit in one page, which is
// what the agent passes without storing it.
const (
	maxUser       = 900
	maxCredential = 3000
	maxCA         = 32 << 10
	page          = 4096
)

// Remote is how a repository's server is asked.
type Remote struct {
	// Username and Password, or Token, are for a server that asks by HTTP who one is.
	Username, Password, Token string
	// CA is an authority, or several, for the server's certificate beside those that are in the sandbox: PEM.
	CA string
	// InsecureTLS takes any certificate.
	InsecureTLS bool
}

// read checks what a request says of who asks; user and password are those within its address.
func (r *Remote) read(k *check.Fields, user, password string) login {
	if r.Token != "" && r.Password != "" {
		k.Bad("token", "and password are both given; send one of them")
	}
	r.checkCA(k)
	secret, field := r.Password, "password"
	if r.Token != "" {
		secret, field = r.Token, "token"
	}
	if r.Username != "" {
		user = r.Username
	}
	if secret != "" {
		password = secret
	}
	l := login{user, password}
	if l == (login{}) {
		return l
	}
	if l.user == "" {
		l.user = tokenUser
	}
	for _, f := range []struct {
		name, value string
		most        int
	}{{"username", l.user, maxUser}, {field, l.password, maxCredential}} {
		if len(f.value) > f.most {
			k.Bad(f.name, "has %d bytes, more than %d", len(f.value), f.most)
		}
		if strings.ContainsFunc(f.value, unicode.IsControl) {
			k.Bad(f.name, "has a line break or another control character in it")
		}
	}
	return l
}

// fits checks that a login, if there is one, is for a server that asks for it.
func (l login) fits(k *check.Fields, field string, a *Address) {
	switch {
	case l == (login{}) || a.Text == "":
	case !a.http():
		k.Bad(field, "is not an HTTP address, and username, password and token are for those alone; leave them out")
	case strings.Contains(a.Text, "="):
		k.Bad(field, "has an = in it, and credentials are told to no such address; write it as %%3D")
	}
}

func (r *Remote) checkCA(k *check.Fields) {
	if r.CA == "" {
		return
	}
	if r.InsecureTLS {
		k.Bad("ca", "and insecure_tls are both given; send one of them")
	}
	if len(r.CA) > maxCA {
		k.Bad("ca", "has %d bytes, more than %d", len(r.CA), maxCA)
		return
	}
	rest := []byte(r.CA)
	for n := 0; ; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			if n == 0 || strings.TrimSpace(string(rest)) != "" {
				k.Bad("ca", "is not a list of certificates in PEM, and nothing else")
			}
			return
		}
		if block.Type != "CERTIFICATE" {
			k.Bad("ca", "has a block of the type %q, which is not a certificate", shown(block.Type))
			return
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			k.Bad("ca", "has a certificate that cannot be read")
			return
		}
	}
}

// input returns what git's helper reads: some copies, since a command may ask more than once.
func (l login) input() []byte {
	one := l.user + "\n" + l.password + "\n"
	return []byte(strings.Repeat(one, max(1, min(4, page/len(one)))))
}

// values are what nothing that git prints may show.
func (l login) values() [][]byte {
	if len(l.password) < sandbox.MinSecretValue { // what is so short is in any text
		return nil
	}
	return [][]byte{[]byte(l.password)}
}
