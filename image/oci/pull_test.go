// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"sandpit.dev/fault"
)

// served is a registry at a loopback address, which before may answer in its place.
type served struct {
	*httptest.Server
	host   string
	inner  http.Handler
	before atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	asked  sync.Map // paths
}

func (s *served) first(f func(http.ResponseWriter, *http.Request) bool) { s.before.Store(&f) }

func serve(t *testing.T) *served {
	t.Helper()
	s := new(served)
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s.inner = inner
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := s.asked.LoadOrStore(r.Method+" "+r.URL.Path, new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		if f := s.before.Load(); f != nil && (*f)(w, r) {
			return
		}
		inner.ServeHTTP(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(s.Close)
	s.host = strings.TrimPrefix(s.URL, "https://")
	return s
}

func (s *served) put(t *testing.T, path, media string, data []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL+path, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if media == "" {
		req.Method, req.URL.RawQuery = http.MethodPost, "digest="+digestOf(data)
	}
	req.Header.Set("Content-Type", media)
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode/100 != 2 {
		t.Fatalf("%s: %s", path, res.Status)
	}
}

// push puts an image into it as app:1 and returns the digests of its manifest and of its layers.
func (s *served) push(t *testing.T, layers ...[]byte) (manifest string, blobs []string) {
	t.Helper()
	config := configOf(t, object{"config": object{"Env": []string{"A=1"}}}, layers...)
	s.put(t, "/v2/app/blobs/uploads/", "", config)
	var list []object
	for _, l := range layers {
		data := gzipped(t, l)
		s.put(t, "/v2/app/blobs/uploads/", "", data)
		blobs = append(blobs, digestOf(data))
		list = append(list, object{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": digestOf(data), "size": len(data)})
	}
	data := jsonOf(t, object{"schemaVersion": 2, "mediaType": ociManifest, "config": object{"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digestOf(config), "size": len(config)}, "layers": list})
	s.put(t, "/v2/app/manifests/1", ociManifest, data)
	return digestOf(data), blobs
}

func (s *served) count(path string) int64 {
	if n, ok := s.asked.Load("GET " + path); ok {
		return n.(*atomic.Int64).Load()
	}
	return 0
}

// puller opens a store that reaches 127.0.0.1 as if it were public, and nothing else.
func puller(t *testing.T, at *served, more ...Registry) *Store {
	t.Helper()
	s := opened(t)
	roots := x509.NewCertPool()
	roots.AddCert(at.Certificate())
	s.remote = newRemote(more, func(a netip.Addr) bool { return a == netip.MustParseAddr("127.0.0.1") }, roots)
	s.anonymous = newRemote(forProjects(more), s.remote.public, roots)
	s.remote.retry, s.anonymous.retry = time.Millisecond, time.Millisecond
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestAnImageIsPulled(t *testing.T) {
	at := serve(t)
	digest, _ := at.push(t, tarOf(t, file{name: "a", body: "one"}), tarOf(t, file{name: "b", body: strings.Repeat("two", 1000)}))
	s := puller(t, at)
	img, err := s.Pull(t.Context(), at.host+"/app:1")
	if err != nil {
		t.Fatal(err)
	}
	if img.Digest != digest || read(t, img, "a") != "one" || img.Config.Env[0] != "A=1" {
		t.Errorf("pulled %+v", img)
	}
	for _, name := range []string{at.host + "/app:1", digest, at.host + "/app@" + digest} {
		if found, err := s.Find(name); err != nil || found.Digest != digest {
			t.Errorf("%s is %s (%v)", name, found.Digest, err)
		}
	}
	if again, err := s.Pull(t.Context(), at.host+"/app@"+digest); err != nil || again.Digest != digest {
		t.Errorf("by its digest: %v (%v)", again, err)
	}
	if _, err := s.Pull(t.Context(), at.host+"/app:none"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a tag that is not there: %v", err)
	}
	failed := s.Pulls()
	if len(failed) != 1 || failed[0].Err == nil || failed[0].Name != at.host+"/app:none" {
		t.Errorf("pulls that failed: %+v", failed)
	}
}

func TestHowFarEachLayerIs(t *testing.T) {
	at := serve(t)
	_, blobs := at.push(t, tarOf(t, file{name: "a", body: "one"}), tarOf(t, file{name: "b", body: strings.Repeat("two", 1000)}))
	s := puller(t, at)
	half, hold := make(chan int64, 1), make(chan struct{})
	at.first(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/blobs/"+blobs[1]) || r.Method != http.MethodGet {
			return false
		}
		whole := httptest.NewRecorder()
		at.inner.ServeHTTP(whole, r)
		data := whole.Body.Bytes()
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = w.Write(data[:len(data)/2])
		_ = http.NewResponseController(w).Flush()
		half <- int64(len(data) / 2)
		<-hold
		_, _ = w.Write(data[len(data)/2:])
		return true
	})
	done := make(chan error, 1)
	go func() {
		_, err := s.Pull(context.Background(), at.host+"/app:1")
		done <- err
	}()
	sent := <-half
	var now Pulling
	for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
		if all := s.Pulls(); len(all) == 1 {
			now = all[0]
		}
		if len(now.Layers) == 2 && now.Layers[0].Ready && now.Layers[1].Done == sent {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after half of a layer the pull is %+v", now)
		}
	}
	for i, l := range now.Layers {
		if l.Digest != blobs[i] || l.Size < l.Done || l.Ready && l.Done != l.Size {
			t.Errorf("layer %d is %+v", i, l)
		}
	}
	if now.Layers[1].Ready {
		t.Errorf("what is not here is ready: %+v", now.Layers[1])
	}
	if got, total := now.Bytes(); got != now.Layers[0].Size+sent || total != now.Layers[0].Size+now.Layers[1].Size {
		t.Errorf("all together are %d of %d bytes", got, total)
	}
	close(hold)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestOnePullForAllWhoAsk(t *testing.T) {
	at := serve(t)
	_, blobs := at.push(t, tarOf(t, file{name: "a", body: "one"}))
	s := puller(t, at)
	asked, hold := make(chan struct{}), make(chan struct{})
	var once sync.Once
	at.first(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/manifests/") {
			once.Do(func() { close(asked) })
			<-hold
		}
		return false
	})
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			ctx := context.Background()
			if i == 0 {
				gone, cancel := context.WithCancel(ctx)
				cancel()
				ctx = gone
			}
			if _, err := s.Pull(ctx, at.host+"/app:1"); (err != nil) != (i == 0) {
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	<-asked
	close(hold)
	wg.Wait()
	if n := at.count("/v2/app/blobs/" + blobs[0]); n > 1 {
		t.Errorf("its layer was fetched %d times", n)
	}
	if _, err := s.Pull(t.Context(), at.host+"/app:1"); err != nil {
		t.Error(err)
	}
}

func TestABrokenDownloadGoesOn(t *testing.T) {
	noise := make([]byte, 300_000)
	for i := range noise {
		noise[i] = byte(i * i >> 7)
	}
	layer := tarOf(t, file{name: "noise", body: string(noise)})
	for _, parts := range []bool{true, false} {
		t.Run(fmt.Sprintf("parts %v", parts), func(t *testing.T) {
			at := serve(t)
			_, blobs := at.push(t, layer)
			data := gzipped(t, layer)
			var n atomic.Int64
			at.first(func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/v2/app/blobs/"+blobs[0] || r.Method != http.MethodGet {
					return false
				}
				from := 0
				if parts {
					if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil {
						w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(data)-1, len(data)))
						w.Header().Set("Content-Length", fmt.Sprint(len(data)-from))
						w.WriteHeader(http.StatusPartialContent)
					}
				}
				if from == 0 {
					w.Header().Set("Content-Length", fmt.Sprint(len(data)))
				}
				end := len(data)
				if n.Add(1) < 4 {
					end = min(len(data), max(from, int(n.Load())*len(data)/8)+100)
				}
				_, _ = w.Write(data[from:end])
				if end < len(data) {
					panic(http.ErrAbortHandler)
				}
				return true
			})
			img, err := puller(t, at).Pull(t.Context(), at.host+"/app:1")
			if err != nil || read(t, img, "noise") != string(noise) {
				t.Fatalf("%v after %d connections", err, n.Load())
			}
			if n.Load() != 4 {
				t.Errorf("%d connections, want 4", n.Load())
			}
		})
	}
}

func TestFinishedLayersAreKept(t *testing.T) {
	at := serve(t)
	first := tarOf(t, file{name: "a", body: "one"})
	_, blobs := at.push(t, first, tarOf(t, file{name: "b", body: "two"}))
	s := puller(t, at)
	// What a pull leaves that ended between its two layers.
	b := s.remote.layer(place{host: at.host, repository: "app"}, descriptor{Digest: blobs[0], Size: int64(len(gzipped(t, first)))})
	b.diffID = digestOf(first)
	if _, err := s.layer(t.Context(), b, newBudget(s.limits, s.dir), func(int64) {}); err != nil {
		t.Fatal(err)
	}
	at.first(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/v2/app/blobs/"+blobs[1] {
			w.WriteHeader(http.StatusForbidden)
			return true
		}
		return false
	})
	if _, err := s.Pull(t.Context(), at.host+"/app:1"); !fault.Is(err, fault.Denied) || len(leftovers(t, s)) > 0 {
		t.Fatalf("%v, left %v", err, leftovers(t, s))
	}
	at.first(func(http.ResponseWriter, *http.Request) bool { return false })
	if _, err := s.Pull(t.Context(), at.host+"/app:1"); err != nil {
		t.Fatal(err)
	}
	if n := at.count("/v2/app/blobs/" + blobs[0]); n != 1 {
		t.Errorf("the finished layer was fetched %d times", n)
	}
}

// TestHostileRegistriesAreRefused has a registry at a public address try to make the server do what it should not.
func TestHostileRegistriesAreRefused(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the server asked for something inside") }))
	defer inside.Close()
	redirect := func(to string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
			return true
		}
	}
	challenge := func(realm string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q,service=\"x\"", realm))
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
	}
	for name, c := range map[string]struct {
		before func(at *served) func(http.ResponseWriter, *http.Request) bool
		code   fault.Code
	}{
		"a redirect to http": {func(*served) func(http.ResponseWriter, *http.Request) bool { return redirect(inside.URL) }, fault.Unavailable},
		"a redirect to the metadata": {func(*served) func(http.ResponseWriter, *http.Request) bool {
			return redirect("https://169.254.169.254/latest/meta-data/")
		}, fault.Denied},
		"a redirect to loopback":         {func(*served) func(http.ResponseWriter, *http.Request) bool { return redirect("https://[::1]:1/") }, fault.Denied},
		"a redirect to another loopback": {func(*served) func(http.ResponseWriter, *http.Request) bool { return redirect("https://127.0.0.2:1/") }, fault.Denied},
		"a redirect to a mapped loopback": {func(*served) func(http.ResponseWriter, *http.Request) bool {
			return redirect("https://[::ffff:127.0.0.2]:1/")
		}, fault.Denied},
		"a redirect to a private address": {func(*served) func(http.ResponseWriter, *http.Request) bool { return redirect("https://10.0.0.1/") }, fault.Denied},
		"a redirect to a file":            {func(*served) func(http.ResponseWriter, *http.Request) bool { return redirect("file:///etc/passwd") }, fault.Unavailable},
		"a redirect with a user":          {func(*served) func(http.ResponseWriter, *http.Request) bool { return redirect("https://a:b@127.0.0.1/") }, fault.Unavailable},
		"redirects without end": {func(at *served) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				http.Redirect(w, r, at.URL+"/v2/app/manifests/"+fmt.Sprint(time.Now().UnixNano()), http.StatusFound)
				return true
			}
		}, fault.Unavailable},
		"a realm at a private address": {func(*served) func(http.ResponseWriter, *http.Request) bool {
			return challenge("https://10.0.0.1/token")
		}, fault.Denied},
		"a realm over http":       {func(*served) func(http.ResponseWriter, *http.Request) bool { return challenge(inside.URL) }, fault.Unavailable},
		"a realm that is none":    {func(*served) func(http.ResponseWriter, *http.Request) bool { return challenge("://") }, fault.Unavailable},
		"a challenge without end": {func(at *served) func(http.ResponseWriter, *http.Request) bool { return challenge(at.URL + "/v2/") }, fault.Denied},
		"a manifest without end": {func(*served) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, _ *http.Request) bool {
				for {
					if _, err := w.Write(make([]byte, 64<<10)); err != nil {
						return true
					}
				}
			}
		}, fault.Unavailable},
		"a manifest that is none": {func(*served) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, _ *http.Request) bool {
				_, _ = io.WriteString(w, "<html>")
				return true
			}
		}, fault.Invalid},
		"a layer without end": {func(*served) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") || r.Header.Get("Range") != "" {
					return false
				}
				for {
					if _, err := w.Write(bytes.Repeat([]byte{'x'}, 64<<10)); err != nil {
						return true
					}
				}
			}
		}, ""},
		"other bytes under every digest": {func(*served) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, "/blobs/") {
					return false
				}
				_, _ = w.Write(tarOf(t, file{name: "evil", body: "x"}))
				return true
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			at := serve(t)
			at.push(t, tarOf(t, file{name: "a", body: "one"}))
			at.first(c.before(at))
			s := puller(t, at)
			_, err := s.Pull(t.Context(), at.host+"/app:1")
			if err == nil || c.code != "" && !fault.Is(err, c.code) {
				t.Errorf("%v (%s), want %s", err, fault.Of(err), c.code)
			}
			if len(s.List()) > 0 || len(leftovers(t, s)) > 0 {
				t.Errorf("left behind: %v, %v", s.List(), leftovers(t, s))
			}
		})
	}
	t.Run("a manifest of another digest", func(t *testing.T) {
		at := serve(t)
		at.push(t, tarOf(t, file{name: "a", body: "one"}))
		at.first(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/manifests/") {
				return false
			}
			r.URL.Path = "/v2/app/manifests/1"
			return false
		})
		if _, err := puller(t, at).Pull(t.Context(), at.host+"/app@sha256:"+strings.Repeat("0", 64)); !fault.Is(err, fault.Invalid) {
			t.Error(err)
		}
	})
}

func TestWhatTheOperatorListsIsReached(t *testing.T) {
	at := serve(t)
	digest, _ := at.push(t, tarOf(t, file{name: "a", body: "one"}))
	nowhere := func(s *Store) *Store { s.remote.public = func(netip.Addr) bool { return false }; return s }
	if _, err := nowhere(puller(t, at)).Pull(t.Context(), at.host+"/app:1"); !fault.Is(err, fault.Denied) || !errors.Is(err, errPrivate) {
		t.Errorf("a private address that is not listed: %v", err)
	}
	s := nowhere(puller(t, at, Registry{Name: at.host, Private: true}))
	if img, err := s.Pull(t.Context(), at.host+"/app:1"); err != nil || img.Digest != digest {
		t.Errorf("a private address that is listed: %v", err)
	}
	at.first(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, "https://127.0.0.2:1/", http.StatusFound)
		return true
	})
	if _, err := s.Pull(t.Context(), at.host+"/app:2"); !fault.Is(err, fault.Denied) {
		t.Errorf("a redirect from a listed registry to another private address: %v", err)
	}
	// A mirror is asked first, and the registry where it has nothing.
	mirror := serve(t)
	at.first(func(http.ResponseWriter, *http.Request) bool { return false })
	m := puller(t, at, Registry{Name: at.host, Mirrors: []string{mirror.host}})
	if img, err := m.Pull(t.Context(), at.host+"/app:1"); err != nil || img.Digest != digest || mirror.count("/v2/app/manifests/1") == 0 {
		t.Errorf("by a mirror that has nothing: %v", err)
	}
}

func TestCredentialsGoToTheirRegistryAlone(t *testing.T) {
	at, other := serve(t), serve(t)
	digest, _ := at.push(t, tarOf(t, file{name: "a", body: "one"}))
	var told atomic.Bool
	other.first(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") != "" {
			told.Store(true)
		}
		return false
	})
	at.first(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/token") {
			user, password, _ := r.BasicAuth()
			if user != "me" || password != "hush" || r.URL.Query().Get("scope") != "repository:app:pull" {
				w.WriteHeader(http.StatusForbidden)
				return true
			}
			_, _ = io.WriteString(w, `{"token":"granted"}`)
			return true
		}
		if r.Header.Get("Authorization") != "Bearer granted" {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+at.URL+`/token",service="reg"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		if strings.Contains(r.URL.Path, "/blobs/") {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
			return true
		}
		return false
	})
	other.push(t, tarOf(t, file{name: "a", body: "one"}))
	s := puller(t, at, Registry{Name: at.host, Username: "me", Password: "hush"})
	if img, err := s.Pull(t.Context(), at.host+"/app:1"); err != nil || img.Digest != digest {
		t.Errorf("%v", err)
	}
	if told.Load() {
		t.Error("where a layer is redirected to was told the token")
	}
	if _, err := puller(t, at).Pull(t.Context(), at.host+"/app:1"); !fault.Is(err, fault.Denied) {
		t.Errorf("without credentials: %v", err)
	}
}

func TestAPullEndsWithTheStore(t *testing.T) {
	at := serve(t)
	at.push(t, tarOf(t, file{name: "a", body: "one"}))
	began, hold := make(chan struct{}), make(chan struct{})
	defer close(hold)
	var once sync.Once
	at.first(func(_ http.ResponseWriter, r *http.Request) bool {
		once.Do(func() { close(began) })
		select {
		case <-hold:
		case <-r.Context().Done():
		}
		return true
	})
	s := puller(t, at)
	ended := make(chan error, 1)
	go func() {
		_, err := s.Pull(context.Background(), at.host+"/app:1")
		ended <- err
	}()
	<-began
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !fault.Is(err, fault.Unavailable) {
		t.Errorf("the pull: %v", err)
	}
	if _, err := s.Pull(t.Context(), at.host+"/app:1"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a pull after Close: %v", err)
	}
}
