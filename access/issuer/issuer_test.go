// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package issuer_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"

	"sandpit.dev/access"
	"sandpit.dev/access/issuer"
	"sandpit.dev/fault"
)

const audience = "https://box.example.org/mcp"

// server is an authorization server as far as its keys.
type server struct {
	*httptest.Server
	t *testing.T

	mu     sync.Mutex
	keys   []jose.JSONWebKey // published
	down   bool
	meta   map[string]any // instead of the metadata
	asked  atomic.Int64   // for the keys
	others atomic.Int64   // for what nobody should ask for
	gate   chan struct{}  // that answers wait for; nil: none
}

func newServer(t *testing.T, keys ...jose.JSONWebKey) *server {
	t.Helper()
	s := &server{t: t, keys: keys}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	gate, down, keys, meta := s.gate, s.down, jose.JSONWebKeySet{Keys: s.keys}, s.meta
	s.mu.Unlock()
	if gate != nil {
		<-gate
	}
	switch {
	case down:
		http.Error(w, "down", http.StatusBadGateway)
	case r.URL.Path == "/realm/.well-known/openid-configuration":
		if meta == nil {
			meta = map[string]any{"issuer": s.url(), "jwks_uri": s.URL + "/keys"}
		}
		_ = json.NewEncoder(w).Encode(meta)
	case r.URL.Path == "/keys":
		s.asked.Add(1)
		_ = json.NewEncoder(w).Encode(keys)
	case r.URL.Path == "/elsewhere":
		http.Redirect(w, r, s.URL+"/keys", http.StatusFound)
	case r.URL.Path == "/large":
		_, _ = w.Write([]byte(`{"keys":[],"x":"` + strings.Repeat("x", 1<<20) + `"}`))
	case r.URL.Path == "/realm/.well-known/oauth-authorization-server", r.URL.Path == "/.well-known/oauth-authorization-server/realm":
		http.NotFound(w, r)
	default:
		s.others.Add(1)
		http.NotFound(w, r)
	}
}

func (s *server) url() string { return s.URL + "/realm" }

func (s *server) set(change func()) { s.mu.Lock(); defer s.mu.Unlock(); change() }

func (s *server) config() issuer.Config {
	return issuer.Config{
		URL: s.url(), Audience: audience, ProjectClaim: "project",
		Scopes:        map[string][]access.Scope{"user": {access.SandboxesRead, access.SandboxesWrite}, "boss": {access.Admin}},
		DefaultScopes: []access.Scope{access.SandboxesRead},
	}
}

// open runs a Set over the server.
func (s *server) open(c issuer.Config, pause time.Duration) *issuer.Set {
	return s.openWith(c, s.Client(), pause)
}

func (s *server) openWith(c issuer.Config, client *http.Client, pause ...time.Duration) *issuer.Set {
	s.t.Helper()
	set, err := issuer.New([]issuer.Config{c}, issuer.Options{HTTP: client, Pause: append(pause, 0)[0]})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- set.Run(ctx) }()
	s.t.Cleanup(func() { cancel(); <-done })
	return set
}

// key is a private key, and what is published of it.
type key struct {
	private any
	alg     jose.SignatureAlgorithm
	public  jose.JSONWebKey
}

func newKey(t testing.TB, id string, alg jose.SignatureAlgorithm) key {
	t.Helper()
	var private crypto.Signer
	var err error
	switch alg {
	case jose.RS256, jose.PS256:
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	case jose.ES256:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jose.ES384:
		private, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case jose.EdDSA:
		_, private, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key{private, alg, jose.JSONWebKey{Key: private.Public(), KeyID: id, Algorithm: string(alg), Use: "sig"}}
}

// sign makes a token. Headers replace those that it would have.
func (k key) sign(t testing.TB, claims any, headers map[jose.HeaderKey]any) string {
	t.Helper()
	o := (&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", k.public.KeyID)
	for name, value := range headers {
		o = o.WithHeader(name, value)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: k.alg, Key: k.private}, o)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

type object = map[string]any

// claims are those of a good token, with changes; nil takes one out.
func (s *server) claims(changes object) object {
	out := object{
		"iss": s.url(), "sub": "alice", "aud": []string{"other", audience}, "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
		"project": "team-a", "scope": "openid user",
	}
	for name, value := range changes {
		out[name] = value
		if value == nil {
			delete(out, name)
		}
	}
	return out
}

func want(t *testing.T, what string, err error, code fault.Code) {
	t.Helper()
	if fault.Of(err) != code {
		t.Errorf("%s: got %v, want %s", what, err, code)
	}
}

func TestATokenOfAnIssuerIsItsCaller(t *testing.T) {
	for _, alg := range []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.ES256, jose.ES384, jose.EdDSA} {
		t.Run(string(alg), func(t *testing.T) {
			k := newKey(t, "one", alg)
			s := newServer(t, k.public)
			set := s.open(s.config(), 0)
			exp := time.Now().Add(time.Hour).Truncate(time.Second).UTC()
			token := k.sign(t, s.claims(object{"exp": exp.Unix()}), nil)
			if !issuer.Looks(token) || issuer.Looks("spt_x") || issuer.Looks("eyJx") {
				t.Error("it does not look like one")
			}
			got, err := set.Check(t.Context(), token)
			wanted := access.Caller{Project: "team-a", Actor: "jwt:alice", TokenID: got.TokenID, Scopes: []access.Scope{access.SandboxesRead, access.SandboxesWrite}, ExpiresAt: exp,
				Issuer: s.config().URL, Words: map[access.Scope]string{access.SandboxesRead: "user", access.SandboxesWrite: "user", access.Admin: "boss"}}
			if diff := cmp.Diff(wanted, got); diff != "" || err != nil || len(got.TokenID) < 10 {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			again, err := set.Check(t.Context(), k.sign(t, s.claims(object{"iat": nil}), nil))
			if err != nil || again.TokenID != got.TokenID {
				t.Errorf("another token of the same subject: %+v, %v", again, err)
			}
			if other, err := set.Check(t.Context(), k.sign(t, s.claims(object{"sub": "bob"}), nil)); err != nil || other.TokenID == got.TokenID {
				t.Errorf("another subject: %+v, %v", other, err)
			}
		})
	}
}

func TestScopesOfTokens(t *testing.T) {
	k := newKey(t, "one", jose.ES256)
	s := newServer(t, k.public)
	mapped := s.open(s.config(), 0)
	plain := s.config()
	plain.Scopes, plain.ScopesClaim, plain.ProjectClaim, plain.Project = nil, "scp", "", "all-of-them"
	direct := s.open(plain, 0)
	for _, c := range []struct {
		name   string
		set    *issuer.Set
		claims object
		want   []access.Scope
	}{
		{"AWord", mapped, object{"scope": "boss"}, []access.Scope{access.Admin}},
		{"AList", mapped, object{"scope": []string{"user", "boss"}}, []access.Scope{access.SandboxesRead, access.SandboxesWrite, access.Admin}},
		{"NoClaim", mapped, object{"scope": nil}, []access.Scope{access.SandboxesRead}},
		{"NothingOfOurs", mapped, object{"scope": "openid email"}, nil},
		{"OurNamesBesideAMap", mapped, object{"scope": "admin sandboxes:write"}, nil},
		{"OurNames", direct, object{"scp": "sandboxes:read tools:core admin"}, []access.Scope{access.ToolsCore, access.SandboxesRead, access.Admin}},
		{"ServerAdmin", direct, object{"scp": "server:admin"}, nil},
		{"ServerAdminInAList", direct, object{"scp": []string{"server:admin", "sandboxes:read"}}, []access.Scope{access.SandboxesRead}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.set.Check(t.Context(), k.sign(t, s.claims(c.claims), nil))
			if diff := cmp.Diff(c.want, got.Scopes); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if got.May(access.ServerAdmin) {
				t.Error("it may administer the server")
			}
		})
	}
	if got, err := direct.Check(t.Context(), k.sign(t, s.claims(object{"project": "../elsewhere"}), nil)); err != nil || got.Project != "all-of-them" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestForgedAndStrayTokensAreRefused(t *testing.T) {
	k, stranger := newKey(t, "one", jose.RS256), newKey(t, "one", jose.RS256)
	s := newServer(t, k.public)
	set := s.open(s.config(), 0)
	if _, err := set.Check(t.Context(), k.sign(t, s.claims(nil), nil)); err != nil {
		t.Fatal(err)
	}
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	der, err := x509.MarshalPKIXPublicKey(k.public.Key)
	if err != nil {
		t.Fatal(err)
	}
	withPublic := func(secret []byte) string {
		return key{private: secret, alg: jose.HS256, public: jose.JSONWebKey{KeyID: "one"}}.sign(t, s.claims(nil), nil)
	}
	good := k.sign(t, s.claims(nil), nil)
	head, rest, _ := strings.Cut(good, ".")
	body, signature, _ := strings.Cut(rest, ".")
	own := stranger.public // a key within the header
	for name, token := range map[string]string{
		"NoAlgorithm":            part(object{"alg": "none", "typ": "JWT", "kid": "one"}) + "." + part(s.claims(nil)) + ".",
		"NoAlgorithm, otherwise": part(object{"alg": "nOnE", "kid": "one"}) + "." + part(s.claims(nil)) + "." + signature,
		"HMACWithThePublicKey":   withPublic(der),
		"HMACWithThePEM":         withPublic(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
		"AnothersSignature":      stranger.sign(t, s.claims(nil), nil),
		"AKeyWithin":             stranger.sign(t, s.claims(nil), map[jose.HeaderKey]any{"jwk": own}),
		"AnAddressOfKeys":        stranger.sign(t, s.claims(nil), map[jose.HeaderKey]any{"jku": s.URL + "/evil-keys", "kid": "two"}),
		"AnAddressOfCertificate": stranger.sign(t, s.claims(nil), map[jose.HeaderKey]any{"x5u": s.URL + "/evil-cert", "kid": "two"}),
		"AKeyThatIsAPath":        k.sign(t, s.claims(nil), map[jose.HeaderKey]any{"kid": "../../../../dev/null"}),
		"AKeyThatIsSQL":          k.sign(t, s.claims(nil), map[jose.HeaderKey]any{"kid": "x' UNION SELECT 'k"}),
		"AChangedClaim":          head + "." + part(s.claims(object{"scope": "boss"})) + "." + signature,
		"AnotherAlgorithm":       part(object{"alg": "PS256", "typ": "JWT", "kid": "one"}) + "." + body + "." + signature,
		"NoSignature":            head + "." + body + ".",
		"Critical":               k.sign(t, s.claims(nil), map[jose.HeaderKey]any{"crit": []string{"exotic"}, "exotic": true}),
		"AnotherType":            k.sign(t, s.claims(nil), map[jose.HeaderKey]any{"typ": "logout+jwt"}),
		"AnotherAudience":        k.sign(t, s.claims(object{"aud": "https://other.example"}), nil),
		"NoAudience":             k.sign(t, s.claims(object{"aud": nil}), nil),
		"AnotherIssuer":          k.sign(t, s.claims(object{"iss": "https://evil.example"}), nil),
		"AnIssuerAlike":          k.sign(t, s.claims(object{"iss": s.url() + "/"}), nil),
		"NoIssuer":               k.sign(t, s.claims(object{"iss": nil}), nil),
		"Expired":                k.sign(t, s.claims(object{"exp": time.Now().Add(-time.Minute).Unix()}), nil),
		"NeverExpires":           k.sign(t, s.claims(object{"exp": nil}), nil),
		"NotYet":                 k.sign(t, s.claims(object{"nbf": time.Now().Add(time.Hour).Unix()}), nil),
		"OfTheFuture":            k.sign(t, s.claims(object{"iat": time.Now().Add(time.Hour).Unix()}), nil),
		"NoSubject":              k.sign(t, s.claims(object{"sub": nil}), nil),
		"ALongSubject":           k.sign(t, s.claims(object{"sub": strings.Repeat("x", 256)}), nil),
		"NoProject":              k.sign(t, s.claims(object{"project": nil}), nil),
		"AProjectThatIsAPath":    k.sign(t, s.claims(object{"project": "../default"}), nil),
		"AProjectThatIsAList":    k.sign(t, s.claims(object{"project": []string{"default"}}), nil),
		"AnEmptyProject":         k.sign(t, s.claims(object{"project": ""}), nil),
		"ScopesThatAreNone":      k.sign(t, s.claims(object{"scope": object{"a": 1}}), nil),
		"BoundToItsHolder":       k.sign(t, s.claims(object{"cnf": object{"jkt": "x"}}), nil),
		"Huge":                   k.sign(t, s.claims(object{"more": strings.Repeat("x", issuer.MaxToken)}), nil),
		"HugeAndNested":          part(object{"alg": "RS256", "kid": "one"}) + "." + base64.RawURLEncoding.EncodeToString([]byte(strings.Repeat(`[`, 5000))) + "." + signature,
		"TwoOfAClaim":            head + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"`+s.url()+`","iss":"x"}`)) + "." + signature,
		"Nothing":                "eyJ..",
		"NoJSON":                 "eyJ.eyJ.eyJ",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := set.Check(t.Context(), token)
			want(t, "Check", err, fault.Unauthenticated)
			if len(c.Scopes) > 0 || c.Project != "" || err != nil && len(err.Error()) > 400 {
				t.Errorf("got %+v, %v", c, err)
			}
		})
	}
	if n := s.others.Load(); n > 0 {
		t.Errorf("%d addresses were asked that a token named", n)
	}
}

// A clock that is a little off ends nothing.
func TestClocksMayDifferALittle(t *testing.T) {
	k := newKey(t, "one", jose.ES256)
	s := newServer(t, k.public)
	set := s.open(s.config(), 0)
	for name, changes := range map[string]object{
		"Expired": {"exp": time.Now().Add(-10 * time.Second).Unix()}, "NotYet": {"nbf": time.Now().Add(10 * time.Second).Unix()},
	} {
		if _, err := set.Check(t.Context(), k.sign(t, s.claims(changes), nil)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKeysThatAreNotForSignaturesAreNotTaken(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Skip("this toolchain makes no weak keys")
	}
	good := newKey(t, "good", jose.ES256)
	forEncryption := newKey(t, "enc", jose.ES256)
	forEncryption.public.Use = "enc"
	elsewhere := newKey(t, "elsewhere", jose.ES256)
	elsewhere.public.Algorithm = "ES384"
	tiny := key{weak, jose.RS256, jose.JSONWebKey{Key: &weak.PublicKey, KeyID: "tiny"}}
	secret := key{[]byte("0123456789abcdef0123456789abcdef"), jose.HS256, jose.JSONWebKey{Key: []byte("0123456789abcdef0123456789abcdef"), KeyID: "secret"}}
	s := newServer(t, good.public, forEncryption.public, elsewhere.public, tiny.public, secret.public)
	set := s.open(s.config(), 0)
	if _, err := set.Check(t.Context(), good.sign(t, s.claims(nil), nil)); err != nil {
		t.Fatal(err)
	}
	for _, k := range []key{forEncryption, elsewhere, tiny, secret} {
		_, err := set.Check(t.Context(), k.sign(t, s.claims(nil), nil))
		want(t, k.public.KeyID, err, fault.Unauthenticated)
	}
}

func TestWhatATokenOfAnIssuerHoldsEndsWithIt(t *testing.T) {
	k := newKey(t, "one", jose.ES256)
	s := newServer(t, k.public)
	set := s.open(s.config(), 0)
	// The clocks may differ by 30 s, so that this one ends in a second.
	c, valid, release, err := set.Admit(t.Context(), k.sign(t, s.claims(object{"exp": time.Now().Add(-28 * time.Second).Unix()}), nil))
	if err != nil || c.Actor != "jwt:alice" {
		t.Fatalf("got %+v, %v", c, err)
	}
	defer release()
	<-valid.Done()
	want(t, "the cause", context.Cause(valid), fault.Unauthenticated)
	_, _, _, err = set.Admit(t.Context(), "eyJ..")
	want(t, "Admit", err, fault.Unauthenticated)
}

func TestConfig(t *testing.T) {
	good := issuer.Config{URL: "https://login.example", Audience: "a", Project: "p"}
	if err := issuer.Check([]issuer.Config{good}); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*issuer.Config){
		"NoURL":        func(c *issuer.Config) { c.URL = "" },
		"PlainHTTP":    func(c *issuer.Config) { c.URL = "http://login.example" },
		"PlainKeys":    func(c *issuer.Config) { c.JWKS = "http://login.example/keys" },
		"AFile":        func(c *issuer.Config) { c.JWKS = "file:///etc/keys" },
		"NoAudience":   func(c *issuer.Config) { c.Audience = "" },
		"NoProject":    func(c *issuer.Config) { c.Project = "" },
		"TwoProjects":  func(c *issuer.Config) { c.ProjectClaim = "project" },
		"ABadProject":  func(c *issuer.Config) { c.Project = "../x" },
		"ServerAdmin":  func(c *issuer.Config) { c.DefaultScopes = []access.Scope{access.ServerAdmin} },
		"ServerAdmin2": func(c *issuer.Config) { c.Scopes = map[string][]access.Scope{"x": {access.ServerAdmin}} },
		"AScope":       func(c *issuer.Config) { c.Scopes = map[string][]access.Scope{"x": {"everything"}} },
	} {
		c := good
		change(&c)
		want(t, name, issuer.Check([]issuer.Config{c}), fault.Invalid)
	}
	want(t, "twice", issuer.Check([]issuer.Config{good, good}), fault.Invalid)
}

// Whatever a caller sends is refused or is somebody; nothing of it is taken without a signature.
func FuzzCheck(f *testing.F) {
	k := newKey(f, "one", jose.ES256)
	set, err := issuer.New([]issuer.Config{{URL: "https://login.example", Audience: audience, Project: "p", JWKS: "https://login.example/keys"}}, issuer.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(k.sign(f, object{"iss": "https://elsewhere.example", "aud": audience}, nil))
	f.Add("eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGUifQ.")
	f.Add("eyJ..")
	gone, cancel := context.WithCancel(context.Background())
	cancel() // nobody waits for keys, which are never had
	f.Fuzz(func(t *testing.T, token string) {
		issuer.Looks(token)
		c, err := set.Check(gone, token)
		if err == nil || len(c.Scopes) > 0 {
			t.Errorf("got %+v", c)
		}
		switch fault.Of(err) {
		case fault.Unauthenticated, fault.Canceled:
		default:
			t.Errorf("got %v", err)
		}
	})
}
