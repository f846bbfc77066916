// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bearer

import (
	"context"
	"crypto/subtle"
	"log/slog"
	"slices"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Actors that no token may be named after: events name them.
const (
	AdminName  = "admin-token" // of the server's own admin tokens
	SystemName = "system"      // of the server's clocks and repairs
)

// Options of an [Authority].
type Options struct {
	// Admins are the server's own admin tokens: of the environment, of the data
	// directory. Each is valid beside the others, belongs to the project
	// [access.DefaultProject] and may manage the tokens of every project. Each
	// must pass [CheckAdminToken].
	Admins   []Secret
	Profiles []string         // of MCP, that tokens may be for
	Logger   *slog.Logger     // nil: silent
	Now      func() time.Time // nil: time.Now
}

// Authority checks and manages bearer tokens. It is safe for concurrent use.
type Authority struct {
	store    store.Store
	profiles []string
	admins   []digest
	another  struct{ text, signed bool } // what forms beside ours tokens of the operator's have
	logger   *slog.Logger
	now      func() time.Time
	cache    cache
	uses     uses

	validities validities

	sandboxes  Sandboxes // nil: single sandboxes have no tokens
	sandboxKey []byte
}

// New makes an Authority over the tokens of a store. It starts nothing: run
// [Authority.Run], or last uses are not written.
func New(s store.Store, o Options) (*Authority, error) {
	a := &Authority{store: s, profiles: o.Profiles, logger: o.Logger, now: o.Now}
	for _, secret := range o.Admins {
		if err := CheckAdminToken(secret.text); err != nil {
			return nil, err
		}
		a.admins = append(a.admins, digestOf(secret.text))
		if !formed(secret.text) {
			a.another.text, a.another.signed = a.another.text || !signed(secret.text), a.another.signed || signed(secret.text)
		}
	}
	if a.logger == nil {
		a.logger = slog.New(slog.DiscardHandler)
	}
	if a.now == nil {
		a.now = time.Now
	}
	a.cache.init()
	a.uses.init()
	a.validities.init()
	return a, nil
}

// Check returns the caller whose bearer token this is, or Unauthenticated; when
// the store does not answer, its error. A token that was checked before costs a
// hash and a look into memory. Via is left for the coat to set.
func (a *Authority) Check(ctx context.Context, token string) (access.Caller, error) {
	c, _, err := a.check(ctx, token)
	return c, err
}

// check is Check, and returns the token: nil for an admin token of the server's own.
func (a *Authority) check(ctx context.Context, token string) (access.Caller, *held, error) {
	none := func(err error) (access.Caller, *held, error) { return access.Caller{}, nil, err }
	if token == "" {
		return none(refuse("there is no bearer token"))
	}
	if len(token) > 4*MaxAdminToken { // a character has four bytes at most
		return none(refuse("the bearer token is not valid"))
	}
	sum := digestOf(token)
	switch {
	case a.isAdmin(sum):
	case strings.HasPrefix(token, sandboxPrefix):
		return a.checkSandbox(ctx, token, sum)
	case !ours(token):
		return none(refuse("the bearer token is not valid"))
	}
	return a.checkDigest(ctx, sum)
}

// isAdmin reports whether a hash is that of an admin token of the server's own.
func (a *Authority) isAdmin(sum digest) bool {
	admin := 0
	for i := range a.admins { // all of them, so that the time reveals nothing
		admin |= subtle.ConstantTimeCompare(sum[:], a.admins[i][:])
	}
	return admin == 1
}

// checkDigest is check for the hash of a token that is not of one sandbox.
func (a *Authority) checkDigest(ctx context.Context, sum digest) (access.Caller, *held, error) {
	none := func(err error) (access.Caller, *held, error) { return access.Caller{}, nil, err }
	if a.isAdmin(sum) {
		return access.Caller{Project: access.DefaultProject, Actor: AdminName, Scopes: []access.Scope{access.Admin, access.ServerAdmin}}, nil, nil
	}
	t, err := a.token(ctx, sum)
	if err != nil {
		return none(err)
	}
	now := a.now()
	if err := t.check(now); err != nil {
		a.cache.drop(sum)
		return none(err)
	}
	a.uses.note(t.ID, now)
	return access.Caller{Project: t.Project, Actor: t.Name, TokenID: t.ID, Scopes: slices.Clone(t.Scopes), Profile: t.Profile, ExpiresAt: t.ends()}, t, nil
}

// token finds the record of a hash. Looking up a hash in an index or a map is safe, unlike
// comparing secrets: an attacker would have to find texts whose hashes have a chosen beginning.
func (a *Authority) token(ctx context.Context, sum digest) (*held, error) {
	if t := a.cache.get(sum); t != nil {
		return t, nil
	}
	generation := a.cache.generation()
	t := new(held)
	err := a.store.View(ctx, func(tx store.Tx) (err error) {
		t.Token, t.until, err = tx.Tokens().ByHash(sum[:])
		return err
	})
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, refuse("the bearer token is not valid")
	case err != nil:
		return nil, err
	}
	a.cache.put(sum, t, generation)
	return t, nil
}

func refuse(format string, args ...any) error {
	return fault.New(fault.Unauthenticated, format, args...).
		WithRemedy("send the header Authorization: Bearer TOKEN, for which commands of sandpit take SANDPIT_TOKEN; sandpit token create makes a token")
}

// NewToken are the parameters of [Authority.Create].
type NewToken struct {
	Name      string         // 1 to 64 printable characters, unique in the project
	Project   string         // empty: the caller's
	Scopes    []access.Scope // none: access.DefaultScopes
	Profile   string         // of MCP; empty: the server's own
	ExpiresAt time.Time      // zero: never; else in the future
}

// Create makes a token and returns its secret, which cannot be read again. The caller needs the
// scope admin, and for a project other than its own server:admin.
func (a *Authority) Create(ctx context.Context, c access.Caller, n NewToken) (access.Token, Secret, error) {
	none := func(err error) (access.Token, Secret, error) { return access.Token{}, Secret{}, err }
	if err := c.Require(access.Admin); err != nil {
		return none(err)
	}
	if n.Project == "" {
		n.Project = c.Project
	}
	if err := access.CheckTokenName("name", n.Name); err != nil {
		return none(err)
	}
	if n.Name == AdminName || n.Name == SystemName {
		return none(fault.InvalidField("name", "%q is the server's own name in events; choose another", n.Name))
	}
	if err := access.CheckProject("project", n.Project); err != nil {
		return none(err)
	}
	if err := within(c, n.Project); err != nil {
		return none(err)
	}
	scopes, err := access.CheckScopes("scopes", n.Scopes)
	if err != nil {
		return none(err)
	}
	if n.Profile != "" && !slices.Contains(a.profiles, n.Profile) {
		return none(fault.InvalidField("profile", "%q is not a valid profile of tools", sandbox.Clip(n.Profile, 40)).
			WithRemedy("there are %s", strings.Join(a.profiles, ", ")))
	}
	// As the store keeps it, so that this answer and later ones agree.
	now := a.now().UTC().Truncate(time.Microsecond)
	expires := n.ExpiresAt
	if !expires.IsZero() {
		if expires = expires.UTC().Truncate(time.Microsecond); !expires.After(now) {
			return none(fault.InvalidField("expires_at", "%s is not in the future (it is %s)",
				n.ExpiresAt.Format(time.RFC3339), now.Format(time.RFC3339)))
		}
	}
	if err := a.store.Room(); err != nil {
		return none(err)
	}
	secret := newSecret()
	sum := digestOf(secret.text)
	t := access.Token{
		ID: string(sandbox.NewID()), Project: n.Project, Name: n.Name, Hash: sum[:],
		Scopes: scopes, Profile: n.Profile, CreatedAt: now, ExpiresAt: expires,
	}
	if err := a.store.Update(ctx, func(tx store.Tx) error { return tx.Tokens().Insert(&t) }); err != nil {
		return none(err)
	}
	a.logger.Info("a token was made", "token", t, "by", c.Actor)
	return t, secret, nil
}

// List returns the tokens of a project; for an empty one those of the caller's own, or with the
// scope server:admin of all. It needs the scope admin. LastUsedAt may be about a minute old.
func (a *Authority) List(ctx context.Context, c access.Caller, project string) (all []*access.Token, err error) {
	if project, err = manage(c, project); err != nil {
		return nil, err
	}
	err = a.store.View(ctx, func(tx store.Tx) (err error) {
		all, err = tx.Tokens().List(project)
		return err
	})
	return all, err
}

// Delete removes a token by id or name; project as in [Authority.List]. When it
// returns, the token is valid no more, and what was admitted by it has ended (see
// [Authority.Admit]). It needs the scope admin.
func (a *Authority) Delete(ctx context.Context, c access.Caller, project, idOrName string) (err error) {
	if project, err = manage(c, project); err != nil {
		return err
	}
	var gone []*access.Token
	err = a.store.Update(ctx, func(tx store.Tx) error {
		before, err := tx.Tokens().List(project)
		if err != nil {
			return err
		}
		if err := tx.Tokens().Delete(project, idOrName); err != nil {
			return err
		}
		after, err := tx.Tokens().List(project)
		gone = slices.DeleteFunc(before, func(t *access.Token) bool {
			return slices.ContainsFunc(after, func(kept *access.Token) bool { return kept.ID == t.ID })
		})
		return err
	})
	// Also after an error: a commit whose answer was lost may have happened.
	a.cache.clear()
	for _, t := range gone {
		a.validities.end(t.ID, deleted())
	}
	if err == nil {
		a.logger.Info("a token was deleted", "token", idOrName, "project", project, "by", c.Actor)
	}
	return err
}

// manage checks the right to see and delete the tokens of a project, and returns the project to
// ask the store for.
func manage(c access.Caller, project string) (string, error) {
	if err := c.Require(access.Admin); err != nil {
		return "", err
	}
	if project == "" {
		if c.May(access.ServerAdmin) {
			return "", nil
		}
		return c.Project, nil
	}
	if err := access.CheckProject("project", project); err != nil {
		return "", err
	}
	return project, within(c, project)
}

// within refuses the tokens of another project to all who may not manage the server: otherwise an
// administrator of one project were one of all.
func within(c access.Caller, project string) error {
	if project == c.Project || c.May(access.ServerAdmin) {
		return nil
	}
	return fault.New(fault.Denied, "the token %q manages the project %s, not %s", c.Actor, c.Project, project).
		WithRemedy("use the server's own admin token")
}
