// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"sandpit.dev/fault"
)

// Pushed is what a push did.
type Pushed struct {
	Reference string // whole, with its registry
	Digest    string // of the manifest
	Size      int64  // of the layer and the config, in bytes
	Sent      int64  // bytes of them that the registry did not have
}

// Bounds of pushes.
const (
	maxPush    = 6 * time.Hour
	storeTime  = 10 * time.Minute // from the last byte of a blob until the registry says that it has it
	expectTime = 10 * time.Second // until it says that it takes one
	pushing    = "pull,push"      // what a token is asked for
)

// Push puts an image into its registry, and names it there: first what the registry has not, then the manifest. It is
// never one of the mirrors that is spoken to. tell is called with the bytes that were sent of all that are to be,
// also from other goroutines, one at a time. A push that breaks off names nothing; what was sent is the registry's to keep.
func (s *Store) Push(ctx context.Context, made *Saving, text string, tell func(sent, total int64)) (Pushed, error) {
	ref, err := ParseReference(text)
	if err != nil {
		return Pushed{}, err
	}
	if ref.Digest != "" {
		return Pushed{}, fault.InvalidField("reference", "%s has a digest, and an image that is pushed has its own", shown(text)).WithRemedy("leave out what begins with @")
	}
	if s.remote == nil {
		return Pushed{}, fault.New(fault.Unsupported, "this server speaks to no registries").WithRemedy("write the image to a file with: sandpit image save")
	}
	ctx, cancel := context.WithTimeout(ctx, maxPush)
	defer cancel()
	config := describe(ociConfig, made.config)
	p := &push{remote: s.remote, place: s.remote.origin(ref), tell: tell, total: made.layer.Size + config.Size}
	out := Pushed{Reference: ref.String(), Digest: made.Digest, Size: p.total}
	p.say(0)
	for _, b := range []outgoing{
		{made.layer, func(ctx context.Context, w io.Writer) error { return writeLayer(ctx, w, made.root) }},
		{config, func(_ context.Context, w io.Writer) error { _, err := w.Write(made.config); return err }},
	} {
		sent, err := p.blob(ctx, b)
		if err != nil {
			return Pushed{}, pushError(ctx, err)
		}
		out.Sent += sent
	}
	if err := p.name(ctx, ref.Tag, made); err != nil {
		return Pushed{}, pushError(ctx, err)
	}
	s.log.Info("pushed an image", "image", ref.String(), "digest", out.Digest, "bytes", out.Size, "sent", out.Sent)
	return out, nil
}

// pushError is the reason of the context's end where that is why.
func pushError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// push is one push.
type push struct {
	remote *remote
	place  place
	total  int64

	mu   sync.Mutex
	done int64 // bytes of finished blobs
	tell func(sent, total int64)
}

// outgoing is a blob that can be written any number of times.
type outgoing struct {
	descriptor
	write func(context.Context, io.Writer) error
}

// say tells how far the push is: n bytes of the blob that is at work, behind those that are done.
func (p *push) say(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tell != nil {
		p.tell(p.done+n, p.total)
	}
}

func (p *push) finished(n int64) {
	p.mu.Lock()
	p.done += n
	p.mu.Unlock()
	p.say(0)
}

// blob sends a blob, unless the registry has it. One that was broken off is sent again from its beginning, since its
// bytes are made as they are sent.
func (p *push) blob(ctx context.Context, b outgoing) (sent int64, err error) {
	has, err := p.has(ctx, b.Digest)
	if err != nil {
		return 0, err
	}
	for try := 1; !has; try++ {
		if err = p.upload(ctx, b); err == nil {
			sent = b.Size
			break
		}
		if try > retries || ctx.Err() != nil || !fault.Is(err, fault.Unavailable) {
			return 0, err
		}
		select {
		case <-time.After(p.remote.retry):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
		if has, err = p.has(ctx, b.Digest); err != nil { // its answer alone may have been lost
			return 0, err
		}
		if has {
			sent = b.Size
		}
	}
	p.finished(b.Size)
	return sent, nil
}

// has reports whether the registry has a blob.
func (p *push) has(ctx context.Context, digest string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, p.remote.stall)
	defer cancel()
	res, err := p.send(ctx, http.MethodHead, p.place.url("blobs", digest), nil)
	if err != nil {
		return false, err
	}
	_ = res.Body.Close()
	switch res.StatusCode {
	case http.StatusOK:
		return true, nil
	case http.StatusNotFound:
		return false, nil
	}
	return false, notTaken(p.place, res.StatusCode)
}

// upload sends a blob in one request, to the place that the registry names.
func (p *push) upload(ctx context.Context, b outgoing) error {
	begin, cancel := context.WithTimeout(ctx, p.remote.stall)
	defer cancel()
	res, err := p.send(begin, http.MethodPost, p.place.url("blobs", "uploads/"), nil)
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		return notTaken(p.place, res.StatusCode)
	}
	to, err := res.Location()
	if err != nil {
		return refusedRemote("it does not say where a blob is to be sent")
	}
	if err := p.remote.allowed(to); err != nil {
		return err
	}
	abandon := *to
	// Behind what is there: a signed address must not be written anew.
	if to.RawQuery != "" {
		to.RawQuery += "&"
	}
	to.RawQuery += "digest=" + url.QueryEscape(b.Digest)
	body := &upstream{ctx: ctx, push: p, blob: b}
	defer body.end()
	res, err = p.send(body.watch(), http.MethodPut, to.String(), body)
	if err == nil {
		_ = res.Body.Close()
		if res.StatusCode != http.StatusCreated {
			err = notTaken(p.place, res.StatusCode)
		}
	}
	if made := body.err(); made != nil { // what was sent is not what was promised
		err = made
	}
	if err != nil {
		p.abandon(ctx, abandon.String())
	}
	return err
}

// abandon has the registry drop what was sent of a blob. One that does not drops it by its own rules.
func (p *push) abandon(ctx context.Context, at string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if res, err := p.send(ctx, http.MethodDelete, at, nil); err == nil {
		_ = res.Body.Close()
	}
}

// name puts the manifest there under a tag.
func (p *push) name(ctx context.Context, tag string, made *Saving) error {
	ctx, cancel := context.WithTimeout(ctx, p.remote.stall)
	defer cancel()
	res, err := p.send(ctx, http.MethodPut, p.place.url("manifests", tag), manifestBody(made.manifest))
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusCreated && res.StatusCode != http.StatusOK {
		return notTaken(p.place, res.StatusCode)
	}
	if got := res.Header.Get("Docker-Content-Digest"); got != "" && got != made.Digest {
		return refusedRemote("it has taken the manifest %s as %s", made.Digest, shown(got))
	}
	return nil
}

// body is what a request sends, any number of times.
type body interface {
	open() io.ReadCloser
	size() int64
	mediaType() string
}

type manifestBody []byte

func (m manifestBody) open() io.ReadCloser { return io.NopCloser(bytes.NewReader(m)) }
func (m manifestBody) size() int64         { return int64(len(m)) }
func (m manifestBody) mediaType() string   { return ociManifest }

// upstream is a blob on its way, which is given up when nothing of it is taken for a while.
type upstream struct {
	ctx  context.Context
	push *push
	blob outgoing

	cancel context.CancelCauseFunc
	timer  *time.Timer
	wg     sync.WaitGroup
	wrong  atomic.Pointer[error]
}

var errStalled = errors.New("it takes nothing more")

// watch returns the context of the request.
func (u *upstream) watch() context.Context {
	var ctx context.Context
	ctx, u.cancel = context.WithCancelCause(u.ctx)
	u.timer = time.AfterFunc(u.push.remote.stall+expectTime, func() { u.cancel(errStalled) })
	return ctx
}

func (u *upstream) end() {
	u.timer.Stop()
	u.cancel(nil)
	u.wg.Wait()
}

func (u *upstream) err() error {
	if err := u.wrong.Load(); err != nil {
		return *err
	}
	return nil
}

func (u *upstream) size() int64       { return u.blob.Size }
func (u *upstream) mediaType() string { return "application/octet-stream" }

// open makes the bytes of the blob anew, while they are read.
func (u *upstream) open() io.ReadCloser {
	r, w := io.Pipe()
	u.wg.Go(func() {
		sum := &summed{w: w, hash: sha256.New()}
		err := u.blob.write(u.ctx, sum)
		if err == nil && (sum.n != u.blob.Size || sum.digest() != u.blob.Digest) {
			err = fault.New(fault.Conflict, "the image changed while it was pushed").WithRemedy("push it again")
			u.wrong.Store(&err)
		}
		_ = w.CloseWithError(err)
	})
	return &sending{PipeReader: r, u: u}
}

// sending is the reading end of a blob on its way.
type sending struct {
	*io.PipeReader
	u *upstream
	n int64
}

func (c *sending) Read(p []byte) (int, error) {
	n, err := c.PipeReader.Read(p)
	if n > 0 {
		c.n += int64(n)
		c.u.timer.Reset(c.u.push.remote.stall)
		c.u.push.say(c.n)
	}
	if c.n >= c.u.blob.Size {
		c.u.timer.Stop() // what is waited for now is the registry's disk
	}
	return n, err
}

// send makes a request of a push, once more with a token where that is asked for.
func (p *push) send(ctx context.Context, method, to string, b body) (*http.Response, error) {
	for again := false; ; again = true {
		req, err := http.NewRequestWithContext(ctx, method, to, nil)
		if err != nil {
			return nil, refusedRemote("it names an address that cannot be asked")
		}
		if b != nil {
			req.Body, req.ContentLength = b.open(), b.size()
			req.GetBody = func() (io.ReadCloser, error) { return b.open(), nil }
			req.Header.Set("Content-Type", b.mediaType())
			req.Header.Set("Expect", "100-continue") // a refusal, or another place, costs no byte
		}
		req.Header.Set("User-Agent", "sandpit")
		home := req.URL.Host == p.place.host
		if h := p.remote.authorization(p.place, pushing); h != "" && home {
			req.Header.Set("Authorization", h)
		}
		res, err := p.remote.pusher.Do(req)
		if err != nil {
			if cause := context.Cause(ctx); errors.Is(cause, errStalled) {
				return nil, fault.New(fault.Unavailable, "the registry %s takes nothing more", shown(p.place.host)).WithRemedy("try again later")
			}
			return nil, unreachable(p.place, err)
		}
		if res.StatusCode != http.StatusUnauthorized || again || !home {
			return res, nil
		}
		challenge := res.Header.Values("WWW-Authenticate")
		_ = res.Body.Close()
		if err := p.remote.authorize(ctx, p.place, pushing, challenge); err != nil {
			return nil, err
		}
	}
}

// notTaken is an answer of a registry that does not take what is sent.
func notTaken(p place, status int) error {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fault.New(fault.Denied, "the registry %s lets this server put nothing into %s (%d)", shown(p.host), shown(p.repository), status).
			WithRemedy("set credentials that may, for this registry in images.registries")
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return fault.New(fault.Denied, "the registry %s takes no images into %s (%d)", shown(p.host), shown(p.repository), status).
			WithRemedy("make the repository there first, or look at its name")
	case http.StatusRequestEntityTooLarge:
		return fault.New(fault.Exhausted, "the registry %s finds the image too large (413)", shown(p.host))
	case http.StatusTooManyRequests:
		return answered(p, "", status)
	}
	if status/100 == 4 {
		return fault.New(fault.Denied, "the registry %s refuses the image: it answers %d", shown(p.host), status)
	}
	return answered(p, "", status)
}
