// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/api/daytona/problem"
	"sandpit.dev/api/filelink"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Paths of signed addresses.
const (
	downloadOnePath = "/files/download"
	uploadOnePath   = "/files/upload-v2"
)

// signatureParam is the parameter with the signature of an address.
const signatureParam = "signature"

// IsSigned reports whether a request shows the signature of an address in the place of a token.
func IsSigned(r *http.Request) bool {
	return len(r.Header["Authorization"]) == 0 && strings.Contains(r.URL.RawQuery, signatureParam+"=") && methodAt(r.URL.Path) != ""
}

// methodAt returns the method that signed addresses of a path are for, or "".
func methodAt(path string) string {
	_, op := split(path)
	switch op {
	case downloadOnePath:
		return http.MethodGet
	case uploadOnePath:
		return http.MethodPost
	}
	return ""
}

// split takes the path of a request to the toolbox apart, by either mount.
func split(path string) (id, op string) {
	rest, _ := strings.CutPrefix(path, problem.Below)
	id, op, _ = strings.Cut(rest, "/")
	return id, "/" + strings.TrimPrefix(op, "toolbox/")
}

// signature returns the signature by a sandbox's key of a method and of what is in the query of an address.
func signature(key, method, path, expires string) string {
	h := hmac.New(sha256.New, []byte(key))
	_, _ = h.Write([]byte("v1:files:" + method + ":" + path + ":" + expires)) // a hash takes everything
	return "v1_" + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// Signed reads or writes the one file that a signed address names, see package filelink. Clients sign by the key of
// the sandbox, whenever they like and for as long as they like: what ends an address before its time is another key.
func (a *API) Signed(c *httpapi.Call) error {
	c.W.Header().Set("Referrer-Policy", "no-referrer") // the address is a secret
	method := methodAt(c.R.URL.Path)
	if c.R.Method != method && (c.R.Method != http.MethodHead || method != http.MethodGet) {
		c.W.Header().Set("Allow", method)
		return guard.WithStatus(http.StatusMethodNotAllowed, fault.New(fault.Malformed, "signed addresses of this path are for %s", method))
	}
	query, err := url.ParseQuery(c.R.URL.RawQuery)
	if err != nil {
		return fault.New(fault.Malformed, "the query cannot be read: %v", err).WithRemedy("use the address as it was made")
	}
	for _, name := range []string{"path", "expires", signatureParam} {
		if len(query[name]) != 1 {
			return fault.InvalidField(name, "is given %d times in a signed address, which has it once", len(query[name]))
		}
	}
	id, _ := split(c.R.URL.Path)
	g, err := a.granted(c, sandbox.ID(id), method, query)
	if err != nil {
		return err
	}
	c.Caller = g.Caller()
	guard.Proven(c.R.Context())
	serve := a.downloadOne
	if g.Write {
		serve = a.uploadOne
	}
	return bounded(serve)(c.R.Context(), c, &byPath{Ref: g.Sandbox, Path: &g.Path})
}

// granted checks the signature of an address, then its expiry. Without a valid signature the answer does not depend on whether the
// sandbox exists.
func (a *API) granted(c *httpapi.Call, id sandbox.ID, method string, query url.Values) (filelink.Grant, error) {
	const remedy = "ask whoever gave you the address for a new one; rotating the sandbox's key ends all"
	path, expires := query.Get("path"), query.Get("expires")
	k, err := a.Files.KeyOf(c.R.Context(), id)
	switch {
	case err == nil && hmac.Equal([]byte(query.Get(signatureParam)), []byte(signature(a.links.SandboxKey(k.Sandbox, k.Salt), method, path, expires))):
	case err == nil || fault.Is(err, fault.NotFound):
		return filelink.Grant{}, a.guard.Guessed(c.W, c.R, fault.New(fault.Unauthenticated, "the signed address is not valid, or no longer").WithRemedy(remedy))
	default:
		return filelink.Grant{}, err
	}
	until, err := strconv.ParseInt(expires, 10, 64)
	if err != nil || until < 0 {
		return filelink.Grant{}, fault.InvalidField("expires", "%q is neither a time in seconds since 1970 nor 0, which is no expiry", sandbox.Clip(expires, 40))
	}
	g := filelink.Grant{Write: method == http.MethodPost, Project: k.Project, Sandbox: string(k.Sandbox), Path: path, Expires: time.Unix(until, 0).UTC()}
	if until != 0 && !time.Now().Before(g.Expires) {
		return filelink.Grant{}, fault.New(fault.Unauthenticated, "the signed address expired at %s", g.Expires.Format(time.RFC3339)).WithRemedy(remedy)
	}
	return g, nil
}
