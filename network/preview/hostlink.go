// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"crypto/hmac"
	"crypto/sha256"
	"math/big"
	"net/http"
	"strconv"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// The token of a link that is on record is a part of a host's name: the link's id, which is of the form of a sandbox's,
// and a signature of it, in lower-case letters and digits.
const (
	linkIDLen    = 16
	hostTokenLen = 40
)

// HostToken returns the token of the link with an id.
func (l *Links) HostToken(id string) string {
	h := hmac.New(sha256.New, l.key)
	_, _ = h.Write([]byte("sandpit preview host 1\x00" + id)) // a hash takes everything
	const digits = hostTokenLen - linkIDLen
	n := new(big.Int).SetBytes(h.Sum(nil))
	n.Mod(n, new(big.Int).Exp(big.NewInt(36), big.NewInt(digits), nil))
	text := n.Text(36)
	return id + strings.Repeat("0", digits-len(text)) + text
}

// readHost returns the id of the link that a token is of.
func (l *Links) readHost(token string) (id string, err error) {
	if id := token[:linkIDLen]; sandbox.ValidID(id) && hmac.Equal([]byte(token), []byte(l.HostToken(id))) {
		return id, nil
	}
	return "", fault.New(fault.Unauthenticated, "the link is not valid").WithRemedy("ask whoever gave you the link for a new one")
}

// LinkPath returns the address by path of a preview by the token of a link that is on record.
func (l *Links) LinkPath(r *http.Request, token string, port int) string {
	return scheme(r) + "://" + r.Host + Root + token + "/" + strconv.Itoa(port) + "/"
}

// LinkAddress returns the address of a preview by the token of a link that is on record, as the client that sent r
// reaches it; "" if it reaches no host of previews.
func (l *Links) LinkAddress(r *http.Request, token string, port int) string {
	host := l.host(r, token, port)
	if host == "" {
		return ""
	}
	return scheme(r) + "://" + host + "/"
}
