// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bearer

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/store"
)

// Rotate gives a token another secret, which it returns: id, name, scopes and last use stay. The
// secrets before it are valid for the grace still, 0 to [access.MaxGrace], or until they were to end
// anyway; what was admitted by them ends with them. project and the rights needed are as for
// [Authority.Delete]. Whoever loses the answer asks again: the secret in use is valid for the grace.
func (a *Authority) Rotate(ctx context.Context, c access.Caller, project, idOrName string, grace time.Duration) (access.Token, Secret, error) {
	none := func(err error) (access.Token, Secret, error) { return access.Token{}, Secret{}, err }
	project, err := manage(c, project)
	if err != nil {
		return none(err)
	}
	if grace < 0 || grace > access.MaxGrace {
		return none(fault.InvalidField("grace_seconds", "%v is outside 0 to %v", grace, access.MaxGrace))
	}
	if err := a.store.Room(); err != nil {
		return none(err)
	}
	secret := newSecret()
	sum := digestOf(secret.text)
	var t *access.Token
	err = a.store.Update(ctx, func(tx store.Tx) (err error) {
		now := a.now().UTC().Truncate(time.Microsecond)
		if t, err = tx.Tokens().Rotate(project, idOrName, sum[:], now, now.Add(grace)); err == nil && t.Expired(now) {
			err = fault.New(fault.State, "the token %q expired at %s", t.Name, t.ExpiresAt.Format(time.RFC3339)).
				WithRemedy("make another, and delete this one")
		}
		return err
	})
	// Also after an error: a commit whose answer was lost may have happened.
	a.cache.clear()
	if t != nil {
		a.endOld(context.WithoutCancel(ctx), t.ID)
	}
	if err != nil {
		return none(err)
	}
	a.logger.Info("a token was rotated", "token", *t, "grace", grace, "by", c.Actor)
	return *t, secret, nil
}

// endOld has what is held by the secrets of a token end when they do by now.
func (a *Authority) endOld(ctx context.Context, id string) {
	for _, sum := range a.validities.secretsOf(id) {
		switch t, err := a.token(ctx, sum); {
		case fault.Is(err, fault.Unauthenticated):
			a.validities.endSecret(sum, replaced())
		case err != nil:
			a.validities.endSecret(sum, err) // it may have been replaced
		default:
			a.validities.shorten(sum, t, a.now)
		}
	}
}
