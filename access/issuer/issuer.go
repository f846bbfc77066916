// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Bounds of tokens.
const (
	MaxToken = 8 << 10 // bytes
	leeway   = 30 * time.Second
	maxName  = 255 // bytes, of a subject
)

// algorithms are those by which tokens may be signed: none is symmetric, since the key of one would
// be public, and "none" is not among them.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// Options of a [Set].
type Options struct {
	HTTP   *http.Client     // for the issuers' keys; nil: one that verifies by the system's authorities
	Logger *slog.Logger     // nil: silent
	Now    func() time.Time // nil: time.Now
	// Pause is the least time between two fetches of an issuer's keys; zero: 10 s.
	Pause time.Duration
}

// Set checks the tokens of several issuers. It is safe for concurrent use.
type Set struct {
	issuers []*issuer
	logger  *slog.Logger
	now     func() time.Time
}

type issuer struct {
	Config
	keys  *keys
	words map[access.Scope]string // see [access.Caller]
}

// New returns the Set of some issuers. It starts nothing: run [Set.Run], or keys are never had.
func New(all []Config, o Options) (*Set, error) {
	all, err := checkAll(all)
	if err != nil {
		return nil, err
	}
	if o.HTTP == nil {
		o.HTTP = new(http.Client)
	}
	s := &Set{logger: o.Logger, now: o.Now}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	if o.Pause <= 0 {
		o.Pause = minRefetch
	}
	for _, c := range all {
		client, err := c.client(*o.HTTP)
		if err != nil {
			return nil, err
		}
		s.issuers = append(s.issuers, &issuer{c, newKeys(c, client, s.now, o.Pause), c.words()})
	}
	return s, nil
}

// Run keeps the issuers' keys current until ctx is done. It always returns nil.
func (s *Set) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, i := range s.issuers {
		wg.Go(func() {
			i.keys.run(ctx, func(err error) { s.logger.Warn("the keys of an issuer cannot be had", "issuer", i.URL, "error", err) })
		})
	}
	wg.Wait()
	return nil
}

// URLs returns which issuers there are.
func (s *Set) URLs() []string {
	var out []string
	for _, i := range s.issuers {
		out = append(out, i.URL)
	}
	return out
}

// Scopes returns the words for scopes that clients can ask the issuers for, without doubles.
func (s *Set) Scopes() []string {
	var out []string
	for _, i := range s.issuers {
		for _, scope := range access.Scopes() {
			word := string(scope)
			if i.words != nil {
				word = i.words[scope]
			}
			if word != "" && !slices.Contains(out, word) {
				out = append(out, word)
			}
		}
	}
	return out
}

// Looks reports whether a text has the form of a token that is checked here, whether it is valid or
// not.
func Looks(token string) bool {
	return strings.HasPrefix(token, "eyJ") && strings.Count(token, ".") == 2 // a JSON object in base64
}

func refuse(format string, args ...any) error {
	return fault.New(fault.Unauthenticated, format, args...).
		WithRemedy("get a token for this server from its issuer, or make one: sandpit token create")
}

// claims are those that every token is checked by.
type claims struct {
	jwt.Claims
	Confirmation json.RawMessage `json:"cnf"`
}

// Check returns the caller whose token this is, or Unauthenticated; Unavailable when its issuer's
// keys are not known and cannot be had. Via is left for the coat to set.
func (s *Set) Check(ctx context.Context, token string) (access.Caller, error) {
	none := func(err error) (access.Caller, error) { return access.Caller{}, err }
	if len(token) > MaxToken {
		return none(refuse("the bearer token has %d bytes, and at most %d are read", len(token), MaxToken))
	}
	t, err := jwt.ParseSigned(token, algorithms)
	if err != nil || len(t.Headers) != 1 {
		return none(refuse("the bearer token is not one that an issuer signed, by a method that is taken"))
	}
	head := t.Headers[0]
	if typ, _ := head.ExtraHeaders[jose.HeaderType].(string); !isAccessToken(typ) {
		return none(refuse("the bearer token is of the type %q, which is not for requests", sandbox.Clip(typ, 40)))
	}
	var unproven jwt.Claims
	if err := t.UnsafeClaimsWithoutVerification(&unproven); err != nil {
		return none(refuse("the bearer token's claims cannot be read"))
	}
	n := slices.IndexFunc(s.issuers, func(i *issuer) bool { return i.URL == unproven.Issuer })
	if n < 0 {
		return none(refuse("the bearer token's issuer is not one of this server's"))
	}
	i := s.issuers[n]
	key, err := i.keys.find(ctx, head.KeyID)
	if err != nil {
		return none(err)
	}
	if key.Algorithm != "" && key.Algorithm != head.Algorithm {
		return none(refuse("the bearer token is signed by another method than its key is for"))
	}
	var c claims
	var rest map[string]json.RawMessage
	if err := t.Claims(key.Key, &c, &rest); err != nil {
		return none(refuse("the bearer token's signature is not its issuer's"))
	}
	return i.caller(c, rest, s.now())
}

// isAccessToken reports whether a token's type, which many leave out, is one for requests (RFC 9068),
// and not one for something else that the same keys sign.
func isAccessToken(typ string) bool {
	switch strings.TrimPrefix(strings.ToLower(typ), "application/") {
	case "", "jwt", "at+jwt":
		return true
	}
	return false
}

// caller returns who a token whose signature is right says that it is.
func (i *issuer) caller(c claims, rest map[string]json.RawMessage, now time.Time) (access.Caller, error) {
	none := func(err error) (access.Caller, error) { return access.Caller{}, err }
	err := c.ValidateWithLeeway(jwt.Expected{Issuer: i.URL, AnyAudience: jwt.Audience{i.Audience}, Time: now}, leeway)
	switch {
	case errors.Is(err, jwt.ErrExpired):
		return none(refuse("the bearer token expired at %s", c.Expiry.Time().UTC().Format(time.RFC3339)))
	case errors.Is(err, jwt.ErrInvalidAudience):
		return none(refuse("the bearer token is for another server: its audience is not %q", i.Audience))
	case err != nil:
		return none(refuse("the bearer token is not valid yet, or not of this issuer"))
	case c.Expiry == nil:
		return none(refuse("the bearer token never expires, which one of an issuer has to"))
	case c.Subject == "" || len(c.Subject) > maxName:
		return none(refuse("the bearer token names nobody: its claim sub is empty or has more than %d bytes", maxName))
	case c.Confirmation != nil:
		return none(refuse("the bearer token is bound to a key of its holder's (cnf), which this server does not check"))
	}
	project := i.Project
	if i.ProjectClaim != "" {
		if json.Unmarshal(rest[i.ProjectClaim], &project) != nil || access.CheckProject("project", project) != nil {
			return none(refuse("the bearer token's claim %q names no project: 1 to %d lower-case letters, digits and dashes", i.ProjectClaim, access.MaxProject))
		}
	}
	scopes, err := i.scopes(rest[i.ScopesClaim])
	if err != nil {
		return none(err)
	}
	sum := sha256.Sum256([]byte(i.URL + "\n" + c.Subject))
	return access.Caller{
		Project: project, Actor: sandbox.Clip("jwt:"+printable(c.Subject), access.MaxTokenName), TokenID: "jwt-" + hex.EncodeToString(sum[:8]),
		Scopes: scopes, ExpiresAt: c.Expiry.Time().UTC(), Issuer: i.URL, Words: i.words,
	}, nil
}

// printable is a subject as an event or a log can have it.
func printable(subject string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, subject)
}

// scopes returns the scopes that a claim says.
func (i *issuer) scopes(claim json.RawMessage) ([]access.Scope, error) {
	if claim == nil {
		return slices.Clone(i.DefaultScopes), nil
	}
	var words []string
	var text string
	if json.Unmarshal(claim, &text) == nil {
		words = strings.Fields(text)
	} else if json.Unmarshal(claim, &words) != nil {
		return nil, refuse("the bearer token's claim %q is neither a text nor a list of texts", i.ScopesClaim)
	}
	held := make(map[access.Scope]bool)
	for _, word := range words {
		if len(i.Scopes) == 0 {
			held[access.Scope(word)] = true
		}
		for _, s := range i.Scopes[word] {
			held[s] = true
		}
	}
	var out []access.Scope
	for _, s := range access.Scopes() { // server:admin is not among them
		if held[s] {
			out = append(out, s)
		}
	}
	return out, nil
}

// Admit is [Set.Check] for a request that may take long: valid ends when the token expires, with the
// error that Check returns from then on as its cause. The caller calls release once.
func (s *Set) Admit(ctx context.Context, token string) (_ access.Caller, valid context.Context, release func(), _ error) {
	c, err := s.Check(ctx, token)
	if err != nil {
		return access.Caller{}, nil, nil, err
	}
	left := c.ExpiresAt.Add(leeway).Sub(s.now())
	valid, release = context.WithTimeoutCause(context.Background(), left, refuse("the bearer token expired at %s", c.ExpiresAt.Format(time.RFC3339)))
	return c, valid, release, nil
}
