// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"sandpit.dev/fault"
)

// Bounds of what is asked of an issuer.
const (
	fetchBound   = 10 * time.Second // for one answer
	waitBound    = 5 * time.Second  // that a request waits for a fetch
	refreshEvery = 10 * time.Minute
	minRefetch   = 10 * time.Second // between two fetches, whatever keys tokens name
	maxAnswer    = 512 << 10        // bytes
	maxKeys      = 100
	minRSA       = 2048 // bits
)

// keys are the keys that an issuer publishes. They are kept until a later fetch succeeds: an issuer
// that is away ends no token. Run alone fetches; find waits, and only for a key that is not here.
type keys struct {
	issuer string // whose metadata names the place; "": place is known
	place  string
	http   *http.Client
	now    func() time.Time
	pause  time.Duration // minRefetch, but in tests
	wake   chan struct{} // holds one token while a fetch is wanted

	mu       sync.Mutex
	all      map[string]jose.JSONWebKey // by their id; nil: never fetched
	tried    time.Time                  // the end of the last fetch; zero: there was none
	failed   error                      // why it failed
	fetching bool
	fetched  chan struct{} // is closed at the end of the next fetch
}

func newKeys(c Config, client *http.Client, now func() time.Time, pause time.Duration) *keys {
	k := &keys{place: c.JWKS, http: client, now: now, pause: pause, wake: make(chan struct{}, 1), fetched: make(chan struct{})}
	if c.JWKS == "" {
		k.issuer = c.URL
	}
	return k
}

// run fetches the keys, again every while, and when a token names one that is not here.
func (k *keys) run(ctx context.Context, tell func(error)) {
	for {
		k.fetch(ctx, tell)
		timer := time.NewTimer(refreshEvery)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-k.wake:
			timer.Stop()
		}
	}
}

// fetch replaces the keys by those that are published now.
func (k *keys) fetch(ctx context.Context, tell func(error)) {
	k.mu.Lock()
	k.fetching = true
	select {
	case <-k.wake: // who asked waits for this fetch
	default:
	}
	k.mu.Unlock()
	all, err := k.get(ctx)
	if err != nil && ctx.Err() == nil {
		tell(err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.all = all
	}
	k.tried, k.failed, k.fetching = k.now(), err, false
	close(k.fetched)
	k.fetched = make(chan struct{})
}

// find returns the key with an id; with none, the only key that there is. One that is not published
// is Unauthenticated. It is Unavailable while that cannot be known.
func (k *keys) find(ctx context.Context, id string) (jose.JSONWebKey, error) {
	for waited := false; ; waited = true {
		key, ok, next, err := k.look(id, waited)
		if ok || err != nil {
			return key, err
		}
		bound := time.NewTimer(waitBound)
		select {
		case <-next:
			bound.Stop()
		case <-ctx.Done():
			bound.Stop()
			return key, fault.Wrap(fault.Canceled, ctx.Err(), "the caller has gone")
		case <-bound.C:
			return key, unavailable(errors.New("its keys have not come in time"))
		}
	}
}

// look finds a key that is here, an error, or what to wait for.
func (k *keys) look(id string, waited bool) (key jose.JSONWebKey, ok bool, next <-chan struct{}, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if id == "" && len(k.all) == 1 {
		for _, key = range k.all {
			return key, true, nil, nil
		}
	}
	if key, ok = k.all[id]; ok && id != "" {
		return key, true, nil, nil
	}
	switch {
	case id == "" && k.all != nil:
		return key, false, nil, refuse("the bearer token names no key, and its issuer has %d", len(k.all))
	case !waited && (k.fetching || k.tried.IsZero() || k.now().Sub(k.tried) >= k.pause):
		if !k.fetching {
			select {
			case k.wake <- struct{}{}:
			default:
			}
		}
		return key, false, k.fetched, nil
	case k.failed != nil || k.all == nil:
		return key, false, nil, unavailable(k.failed)
	}
	return key, false, nil, refuse("the bearer token names a key that its issuer does not have")
}

func unavailable(cause error) error {
	e := fault.Wrap(fault.Unavailable, cause, "the bearer token cannot be checked now: the keys of its issuer cannot be had").
		WithRemedy("ask again in a while; the server's own tokens go on working")
	e.Retry = minRefetch
	return e
}

// get asks for the keys.
func (k *keys) get(ctx context.Context) (map[string]jose.JSONWebKey, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchBound)
	defer cancel()
	place := k.place
	if k.issuer != "" {
		var err error
		if place, err = k.discover(ctx); err != nil {
			return nil, err
		}
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := k.ask(ctx, place, &set); err != nil {
		return nil, err
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("%s has %d keys, and at most %d are read", place, len(set.Keys), maxKeys)
	}
	all := make(map[string]jose.JSONWebKey)
	for _, text := range set.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(text, &key) != nil || !usable(key) {
			continue // of a kind that we do not know, or for something else
		}
		all[key.KeyID] = key
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no key by which signatures are checked", place)
	}
	return all, nil
}

// usable reports whether signatures can be checked by a key: a public one, that is for it, and that
// is not too weak.
func usable(key jose.JSONWebKey) bool {
	if !key.Valid() || !key.IsPublic() || key.Use != "" && key.Use != "sig" {
		return false
	}
	if r, ok := key.Key.(*rsa.PublicKey); ok {
		return r.N.BitLen() >= minRSA
	}
	return true
}

// discover asks for the issuer's metadata, and returns where it says that the keys are.
func (k *keys) discover(ctx context.Context) (string, error) {
	u, err := url.Parse(k.issuer)
	if err != nil {
		return "", err
	}
	path := strings.TrimSuffix(u.Path, "/")
	var errs []error
	for _, at := range []string{path + "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server" + path} {
		u.Path = at
		var meta struct {
			Issuer string `json:"issuer"`
			JWKS   string `json:"jwks_uri"`
		}
		switch err := k.ask(ctx, u.String(), &meta); {
		case err != nil:
			errs = append(errs, err)
		case meta.Issuer != k.issuer:
			errs = append(errs, fmt.Errorf("%s is the metadata of another issuer, %q", u, meta.Issuer))
		case checkAddress("jwks_uri", meta.JWKS) != nil:
			errs = append(errs, fmt.Errorf("%s says that the keys are at %q, which is not an https address", u, meta.JWKS))
		default:
			return meta.JWKS, nil
		}
	}
	return "", errors.Join(errs...)
}

// ask reads a JSON document.
func (k *keys) ask(ctx context.Context, address string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := k.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", address, resp.Status)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return err
	case len(text) > maxAnswer:
		return fmt.Errorf("%s has more than %d bytes", address, maxAnswer)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s is not what it should be: %w", address, err)
	}
	return nil
}
