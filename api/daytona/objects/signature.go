// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"sandpit.dev/fault"
)

// The signature of S3, version 4, as AWS describes it: a request says which of its headers are signed, when, and what its
// body is, or that the body is signed in parts or not at all.
const (
	algorithm = "AWS4-HMAC-SHA256"
	stamp     = "20060102T150405Z"
	skew      = 15 * time.Minute // of the clocks of a client and ours

	headerSum   = "X-Amz-Content-Sha256"
	headerDate  = "X-Amz-Date"
	headerToken = "X-Amz-Security-Token"

	mostHeaders = 64 // that are signed
)

// signed is a request whose signature is right.
type signed struct {
	project string
	actor   string // who asked for the key
	sum     string // what it says of its body
	// For the parts of a body that is signed in parts.
	key              []byte
	at, scope, first string
}

func refused(format string, args ...any) *fault.Error {
	return fault.New(fault.Unauthenticated, format, args...).WithRemedy("%s", askAgain)
}

// check returns who has signed a request. Nothing of its body is read.
func (k *Keys) check(r *http.Request) (*signed, error) {
	all := r.Header["Authorization"]
	if len(all) != 1 || !strings.HasPrefix(all[0], algorithm+" ") {
		return nil, refused("the request has no signature by %s", algorithm)
	}
	credential, names, signature := "", "", ""
	for part := range strings.SplitSeq(all[0][len(algorithm)+1:], ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "Credential":
			credential = value
		case "SignedHeaders":
			names = value
		case "Signature":
			signature = value
		}
	}
	key, project, actor, err := k.find(r.Header.Get(headerToken))
	if err != nil {
		return nil, err
	}
	id, scope, _ := strings.Cut(credential, "/")
	at, err := time.Parse(stamp, r.Header.Get(headerDate))
	part := strings.Split(scope, "/")
	if err != nil || len(part) != 4 || part[0] != at.Format("20060102") || part[2] != "s3" || part[3] != "aws4_request" || id != key.ID {
		return nil, refused("the credential is not of this key, day and service, or there is no %s", headerDate)
	}
	if d := k.now().Sub(at); d > skew || d < -skew {
		return nil, refused("the request was signed at %s, more than %v from now by this server's clock", at.Format(time.RFC3339), skew)
	}
	headers := strings.Split(names, ";")
	if err := covers(r, headers); err != nil {
		return nil, err
	}
	s := &signed{project: project, actor: actor, sum: r.Header.Get(headerSum), at: at.Format(stamp), scope: scope, first: signature}
	s.key = []byte("AWS4" + key.Secret)
	for _, p := range part {
		s.key = mac(s.key, p)
	}
	h := sha256.Sum256([]byte(canonical(r, headers, s.sum)))
	want := s.sign(algorithm + "\n" + s.at + "\n" + scope + "\n" + hex.EncodeToString(h[:]))
	if !hmac.Equal([]byte(signature), []byte(want)) {
		return nil, refused("the signature is not that of this request")
	}
	return s, nil
}

// sign returns the signature of a text.
func (s *signed) sign(text string) string { return hex.EncodeToString(mac(s.key, text)) }

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// covers refuses a request of which less is signed than it has of what matters.
func covers(r *http.Request, names []string) error {
	if len(names) > mostHeaders || !slices.IsSorted(names) || !slices.Contains(names, "host") {
		return refused("the signed headers are more than %d, not in order or without host", mostHeaders)
	}
	for name, values := range r.Header {
		lower := strings.ToLower(name)
		if strings.HasPrefix(lower, "x-amz-") && !slices.Contains(names, lower) {
			return refused("the header %.80s is not signed", lower)
		}
		if len(values) > 1 && slices.Contains(names, lower) && strings.HasPrefix(lower, "x-amz-") {
			return refused("the header %.80s is there twice", lower)
		}
	}
	return nil
}

// canonical is the text of a request that is signed.
func canonical(r *http.Request, names []string, sum string) string {
	var b strings.Builder
	b.WriteString(r.Method + "\n" + encode(r.URL.Path, true) + "\n" + canonicalQuery(r.URL.Query()) + "\n")
	for _, name := range names {
		b.WriteString(name + ":")
		switch name {
		case "host":
			b.WriteString(r.Host)
		case "content-length":
			b.WriteString(r.Header.Get("Content-Length"))
		default:
			for i, v := range r.Header.Values(name) {
				if i > 0 {
					b.WriteByte(',')
				}
				b.WriteString(strings.Join(strings.Fields(v), " "))
			}
		}
		b.WriteByte('\n')
	}
	b.WriteString("\n" + strings.Join(names, ";") + "\n" + sum)
	return b.String()
}

func canonicalQuery(q url.Values) string {
	var all []string
	for name, values := range q {
		for _, v := range values {
			all = append(all, encode(name, false)+"="+encode(v, false))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "&")
}

// encode is how S3 writes a path or a part of a query.
func encode(text string, path bool) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 || path && c == '/':
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}
