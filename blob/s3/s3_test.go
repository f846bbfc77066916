// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"go.uber.org/goleak"

	"sandpit.dev/blob"
	"sandpit.dev/blob/blobtest"
	"sandpit.dev/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve has a server of buckets in this process; before sees each request first, and says whether it has
// answered.
func serve(t *testing.T, before func(http.ResponseWriter, *http.Request) bool) (*s3mem.Backend, Options) {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("archives"); err != nil {
		t.Fatal(err)
	}
	h := gofakes3.New(backend).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before == nil || !before(w, r) {
			h.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return backend, Options{Endpoint: server.URL, Bucket: "archives", Prefix: "host-1/", PathStyle: true, AccessKey: "key", SecretKey: "secret"}
}

func open(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestBucket(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store {
		_, o := serve(t, nil)
		return open(t, o)
	})
}

func TestObjectsLieBelowThePrefixAndRequestsAreSigned(t *testing.T) {
	var unsigned atomic.Int32
	backend, o := serve(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=key/") || !strings.HasPrefix(r.URL.Path, "/archives/") {
			unsigned.Add(1)
		}
		return false
	})
	s := open(t, o)
	if err := s.Put(t.Context(), "one", strings.NewReader("1")); err != nil {
		t.Fatal(err)
	}
	if _, err := backend.HeadObject("archives", "host-1/one.sandpit"); err != nil {
		t.Error(err)
	}
	if n := unsigned.Load(); n != 0 {
		t.Errorf("%d requests without a signature, or elsewhere", n)
	}
	if p := s.Place(); !strings.Contains(p, "archives") || !strings.Contains(p, "host-1/") || strings.Contains(p, "secret") || strings.Contains(p, "key") {
		t.Errorf("its place: %q", p)
	}
}

// What is wrong with a bucket is said with its name, what to do, and none of its own words.
func TestABucketThatFailsIsNamed(t *testing.T) {
	answer := func(status int, code string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>EVIL</Message></Error>")
			return true
		}
	}
	for name, c := range map[string]struct {
		before func(http.ResponseWriter, *http.Request) bool
		want   fault.Code
		words  string
	}{
		"denied":    {answer(403, "AccessDenied"), fault.Unavailable, "AccessDenied"},
		"no bucket": {answer(404, "NoSuchBucket"), fault.Unavailable, "there is no bucket"},
		"full":      {answer(403, "QuotaExceeded"), fault.Full, "full"},
		"nonsense":  {answer(400, "\x1b[31mEVIL"), fault.Unavailable, "does not answer as it should"},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
			return true
		}, fault.Unavailable, "does not answer as it should"},
	} {
		t.Run(name, func(t *testing.T) {
			_, o := serve(t, c.before)
			s := open(t, o)
			f := fault.As(s.Put(t.Context(), "one", strings.NewReader("1")))
			if f == nil || f.Code != c.want || !strings.Contains(f.Message, c.words) || !strings.Contains(f.Message, "archives") || strings.Contains(f.Message, "EVIL") || f.Remedy == "" {
				t.Errorf("Put: %#v", f)
			}
		})
	}
	_, o := serve(t, nil)
	o.Endpoint = "http://127.0.0.1:1"
	s := open(t, o)
	if f := fault.As(s.Put(t.Context(), "one", strings.NewReader("1"))); f == nil || f.Code != fault.Unavailable || f.Remedy == "" {
		t.Errorf("a dead one: %#v", f)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	good := Options{Bucket: "b-1", AccessKey: "a", SecretKey: "b"}
	for name, change := range map[string]func(*Options){
		"no bucket":     func(o *Options) { o.Bucket = "" },
		"bucket":        func(o *Options) { o.Bucket = "A/b" },
		"bucket, up":    func(o *Options) { o.Bucket = "a..b" },
		"region":        func(o *Options) { o.Region = "a.evil.test/" },
		"prefix":        func(o *Options) { o.Prefix = "a" },
		"prefix, up":    func(o *Options) { o.Prefix = "../" },
		"endpoint":      func(o *Options) { o.Endpoint = "example.org" },
		"a path":        func(o *Options) { o.Endpoint = "https://example.org/b" },
		"a password":    func(o *Options) { o.Endpoint = "https://a:b@example.org" },
		"another wire":  func(o *Options) { o.Endpoint = "ftp://example.org" },
		"no keys":       func(o *Options) { o.AccessKey = "" },
		"half the keys": func(o *Options) { o.SecretKey = "" },
	} {
		o := good
		change(&o)
		if _, err := New(o); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s, err := New(good); err != nil || s.Place() != "bucket b-1 at https://s3.us-east-1.amazonaws.com" {
		t.Errorf("%v, %v", s, err)
	}
}
