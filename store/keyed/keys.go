// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package keyed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"log/slog"
	"sync"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Life is how long a key protects its request.
const Life = 24 * time.Hour

// MaxKey is the most characters of a key.
const MaxKey = 255

// MaxAnswer is the most bytes of an answer that is kept.
const MaxAnswer = store.MaxKeptAnswer

// Options of [Keys].
type Options struct {
	Logger *slog.Logger     // nil: silent
	Now    func() time.Time // nil: time.Now
}

// Keys are the idempotency keys of a server's requests. It is safe for concurrent use.
type Keys struct {
	store  store.Store
	logger *slog.Logger
	now    func() time.Time
	wake   chan struct{} // holds one token while answers wait to be written

	mu      sync.Mutex
	working map[string][]byte              // by ID: the hash of a request that is being served
	ended   map[string]*store.KeyedRequest // answers that are not written yet
}

// New returns the keys of a store's requests. It starts nothing: run [Keys.Run], or no
// answer is written.
func New(s store.Store, o Options) *Keys {
	k := &Keys{
		store: s, logger: o.Logger, now: o.Now, wake: make(chan struct{}, 1),
		working: make(map[string][]byte), ended: make(map[string]*store.KeyedRequest),
	}
	if k.logger == nil {
		k.logger = slog.New(slog.DiscardHandler)
	}
	if k.now == nil {
		k.now = time.Now
	}
	return k
}

// Request is a request with a key.
type Request struct {
	Project string
	Owner   string // within the project; empty: any caller who may ask for this
	Route   string // with what its path names
	Key     string
	Hash    []byte // of what it asks for
	Makes   []Kind // what it is there to make; anything else that is made during the request is not its own
}

// id is what the record of a request is found by.
func (r *Request) id() []byte {
	h := sha256.New()
	for _, part := range []string{r.Project, r.Owner, r.Route, r.Key} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}

// CheckKey returns what is wrong with a key, as an error about field.
func CheckKey(field, key string) error {
	if key == "" || len(key) > MaxKey {
		return fault.InvalidField(field, "has %d characters; a key has 1 to %d", len(key), MaxKey)
	}
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return fault.InvalidField(field, "%q has a character that is not printable ASCII", sandbox.Clip(key, 80)).
				WithRemedy("send a UUID, or another text that no other request has")
		}
	}
	return nil
}

// Begin begins a request, whose Call the caller ends. A key that another request has is
// fault.Invalid, and one whose request is being served fault.Conflict.
func (k *Keys) Begin(ctx context.Context, r Request) (*Call, error) {
	id := r.id()
	k.mu.Lock()
	if hash, ok := k.working[string(id)]; ok {
		k.mu.Unlock()
		if !bytes.Equal(hash, r.Hash) {
			return nil, another(r.Key)
		}
		return nil, atWork(r.Key)
	}
	prior := k.ended[string(id)]
	k.working[string(id)] = r.Hash
	k.mu.Unlock()

	c := &Call{keys: k, makes: r.Makes}
	c.renew(&store.KeyedRequest{ID: id, Project: r.Project, Hash: r.Hash})
	err := error(nil)
	if prior == nil {
		err = k.store.View(ctx, func(tx store.Tx) (err error) {
			prior, err = tx.Requests().Get(id)
			return err
		})
	}
	switch {
	case fault.Is(err, fault.NotFound):
	case err != nil:
		c.End()
		return nil, err
	case k.now().Sub(prior.CreatedAt) >= Life:
	case !bytes.Equal(prior.Hash, r.Hash):
		c.End()
		return nil, another(r.Key)
	default:
		c.prior, c.record = prior, *prior
	}
	return c, nil
}

func another(key string) error {
	return fault.InvalidField("Idempotency-Key", "%q is the key of another request: the same key comes with the same body", sandbox.Clip(key, 80)).
		WithRemedy("send a new key with each new request")
}

func atWork(key string) error {
	err := fault.New(fault.Conflict, "the request with the idempotency key %q is being served", sandbox.Clip(key, 80))
	err.Retry = time.Second
	return err.WithRemedy("repeat it in a moment: its answer comes then")
}

// Bounds of writing.
const (
	// maxUnwritten is how many answers wait to be written at most: what is above is not
	// kept, and is made again of what its request made.
	maxUnwritten = 256
	gather       = 20 * time.Millisecond // answers of this time share a commit
	writeBound   = 10 * time.Second
	expireEvery  = 10 * time.Minute
	expireAtOnce = 500
)

// keep has an answer written behind its caller's back.
func (k *Keys) keep(r *store.KeyedRequest) {
	k.mu.Lock()
	if len(k.ended) < maxUnwritten {
		k.ended[string(r.ID)] = r
	}
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Run writes answers and removes what has expired, until ctx is done; what is left then is
// written before it returns.
func (k *Keys) Run(ctx context.Context) error {
	expire := time.NewTicker(expireEvery)
	defer expire.Stop()
	k.expire(ctx)
	for {
		select {
		case <-ctx.Done():
			k.write(context.WithoutCancel(ctx))
			return nil
		case <-expire.C:
			k.expire(ctx)
			k.write(context.WithoutCancel(ctx)) // what a full disk has held up
			continue
		case <-k.wake:
		}
		select {
		case <-time.After(gather):
		case <-ctx.Done():
		}
		k.write(context.WithoutCancel(ctx))
	}
}

// write commits the answers that wait. What the store does not take is made again of what
// its request made, if that is asked for. While the disk of the records is full they go on
// waiting: what is left of it is for stops and deletes.
func (k *Keys) write(ctx context.Context) {
	if fault.Is(k.store.Room(), fault.Full) {
		return
	}
	k.mu.Lock()
	all := make([]*store.KeyedRequest, 0, len(k.ended))
	for _, r := range k.ended {
		all = append(all, r)
	}
	k.mu.Unlock()
	if len(all) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, writeBound)
	defer cancel()
	err := k.store.Update(ctx, func(tx store.Tx) error {
		for _, r := range all {
			if err := tx.Requests().Put(r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		k.logger.Warn("the answers of requests with an idempotency key cannot be kept", "requests", len(all), "error", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range all {
		if k.ended[string(r.ID)] == r {
			delete(k.ended, string(r.ID))
		}
	}
}

func (k *Keys) expire(ctx context.Context) {
	for ctx.Err() == nil {
		var n int
		err := k.store.Update(ctx, func(tx store.Tx) (err error) {
			n, err = tx.Requests().Expire(k.now().Add(-Life), expireAtOnce)
			return err
		})
		if err != nil && ctx.Err() == nil {
			k.logger.Warn("requests with an idempotency key that have expired cannot be removed", "error", err)
		}
		if err != nil || n < expireAtOnce {
			return
		}
	}
}
