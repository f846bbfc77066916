// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"sandpit.dev/access"
	"sandpit.dev/api/guard"
	"sandpit.dev/build/contexts"
	"sandpit.dev/fault"
)

const hexes = "0123456789abcdef0123456789abcdef"

type noTokens struct{}

func (noTokens) Admit(context.Context, string) (access.Caller, context.Context, func(), error) {
	return access.Caller{}, nil, nil, fault.New(fault.Unauthenticated, "there are no tokens here")
}

type house struct {
	t     *testing.T
	keys  *Keys
	store *contexts.Store
	url   string
	now   time.Time
}

func open(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, now: time.Now()}
	h.keys = NewKeys(func() time.Time { return h.now })
	var err error
	if h.store, err = contexts.Open(contexts.Options{Dir: filepath.Join(t.TempDir(), "contexts")}); err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Options{Tokens: noTokens{}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(New(g, h.keys, h.store))
	t.Cleanup(server.Close)
	h.url = server.URL
	return h
}

func caller(project string) access.Caller { return access.Caller{Project: project, Actor: "alice"} }

// client is MinIO's, which signs in its own way.
func (h *house) client(k Key) *minio.Client {
	h.t.Helper()
	c, err := minio.New(strings.TrimPrefix(h.url, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(k.ID, k.Secret, k.Token), BucketLookup: minio.BucketLookupPath, MaxRetries: 1, TrailingHeaders: true,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

func key(project string) string { return project + "/" + hexes + "/context.tar" }

func TestAnotherClientSpeaksToIt(t *testing.T) {
	t.Parallel()
	h := open(t)
	c := h.client(h.keys.Issue(caller("a")))
	ctx := t.Context()
	if where, err := c.GetBucketLocation(ctx, bucket); err != nil || where != region {
		t.Errorf("the bucket is in %q, %v", where, err)
	}
	if ok, err := c.BucketExists(ctx, bucket); !ok || err != nil {
		t.Errorf("the bucket is there: %v, %v", ok, err)
	}
	if _, err := c.StatObject(ctx, bucket, key("a"), minio.StatObjectOptions{}); minio.ToErrorResponse(err).StatusCode != http.StatusNotFound {
		t.Errorf("what is not there: %v", err)
	}
	content := make([]byte, 17<<20+3)
	_, _ = rand.Read(content)
	for name, o := range map[string]minio.PutObjectOptions{
		"in parts, each signed in chunks": {PartSize: 5 << 20},
		"at once, signed in chunks":       {DisableMultipart: true},
		"at once, with a checksum behind": {DisableMultipart: true, Checksum: minio.ChecksumCRC32},
		"at once, by its hexes":           {DisableMultipart: true, DisableContentSha256: false, SendContentMd5: true},
	} {
		size := int64(len(content))
		if strings.HasPrefix(name, "in parts") {
			size = -1
		}
		got, err := c.PutObject(ctx, bucket, key("a"), io.LimitReader(bytes.NewReader(content), int64(len(content))), size, o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		is, err := h.store.Find("a", hexes)
		sum := sha256.Sum256(content)
		if err != nil || is.Size != int64(len(content)) || is.Tag != hex.EncodeToString(sum[:16]) || got.ETag != is.Tag {
			t.Errorf("%s: kept %+v, %v; told %s", name, is, err, got.ETag)
		}
		if at, err := c.StatObject(ctx, bucket, key("a"), minio.StatObjectOptions{}); err != nil || at.Size != is.Size {
			t.Errorf("%s: told %+v, %v", name, at, err)
		}
		h.store.Remove("a", []string{hexes})
	}
	if _, err := c.PutObject(ctx, bucket, key("a"), strings.NewReader("x"), 1, minio.PutObjectOptions{}); err != nil {
		t.Fatal(err)
	}
	for prefix, want := range map[string]int{"a/" + hexes + "/": 1, "a/": 1, key("a"): 1, "a/" + hexes[:3]: 1, "a/" + hexes + "/x": 0, "a/f": 0} {
		n := 0
		for o := range c.ListObjects(ctx, bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
			if o.Err != nil || o.Key != key("a") {
				t.Errorf("a list of %s: %+v", prefix, o)
			}
			n++
		}
		if n != want {
			t.Errorf("a list of %s has %d, want %d", prefix, n, want)
		}
	}
	// What a key is not for.
	if _, err := c.GetObject(ctx, bucket, key("a"), minio.GetObjectOptions{}); err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{
		"delete": c.RemoveObject(ctx, bucket, key("a"), minio.RemoveObjectOptions{}),
		"bucket": c.MakeBucket(ctx, "another", minio.MakeBucketOptions{}),
	} {
		if minio.ToErrorResponse(err).StatusCode < 400 {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAKeyIsGoodForOneProjectAndOneHour(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := t.Context()
	own, other := h.keys.Issue(caller("a")), h.keys.Issue(caller("b"))
	put := func(k Key, key string) int {
		_, err := h.client(k).PutObject(ctx, bucket, key, strings.NewReader("x"), 1, minio.PutObjectOptions{})
		return minio.ToErrorResponse(err).StatusCode
	}
	if got := put(own, key("a")); got != 0 {
		t.Fatalf("its own: %d", got)
	}
	for what, k := range map[string]Key{
		"another project's":           other,
		"with another secret":         {own.ID, other.Secret, own.Token},
		"with another token":          {own.ID, own.Secret, other.Token},
		"with another id":             {other.ID, own.Secret, own.Token},
		"without a token":             {own.ID, own.Secret, ""},
		"with a token that was cut":   {own.ID, own.Secret, own.Token[:20]},
		"with a token that was made":  {own.ID, own.Secret, strings.Repeat("A", 100)},
		"with a token that is large":  {own.ID, own.Secret, strings.Repeat("A", 5000)},
		"of an earlier process":       NewKeys(nil).Issue(caller("a")),
		"with a changed token":        {own.ID, own.Secret, "B" + own.Token[1:]},
		"with the secret as token":    {own.ID, own.Secret, own.Secret},
		"of a project with its start": h.keys.Issue(caller("a/")),
	} {
		if got := put(k, key("a")); got != http.StatusForbidden {
			t.Errorf("a key %s: %d", what, got)
		}
	}
	for _, bad := range []string{
		"b/" + hexes + "/context.tar", "a/" + hexes + "/other.tar", "a/" + hexes, "a/../b/" + hexes + "/context.tar", "a/..", "a/" + strings.ToUpper("abcdef") + hexes[6:] + "/context.tar",
		"a/" + hexes + "/context.tar/x", "a/%2e%2e/" + hexes + "/context.tar", "a//" + hexes + "/context.tar", "A/" + hexes + "/context.tar", "a/" + hexes + "/context.tar\x00",
	} {
		if got := put(own, bad); got < 400 || got >= 500 {
			t.Errorf("the key %q: %d", bad, got)
		}
	}
	if got := h.store.List("b", ""); len(got) != 0 {
		t.Errorf("of the other project there are %v", got)
	}
	for _, prefix := range []string{"", "b/", "a", "../"} {
		for o := range h.client(own).ListObjects(ctx, bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
			if minio.ToErrorResponse(o.Err).StatusCode != http.StatusForbidden {
				t.Errorf("a list of %q: %+v", prefix, o)
			}
		}
	}
	h.now = h.now.Add(Validity - 10*time.Minute)
	if _, _, _, err := h.keys.find(own.Token); err != nil {
		t.Errorf("after 50 minutes: %v", err)
	}
	h.now = h.now.Add(10 * time.Minute)
	if _, _, _, err := h.keys.find(own.Token); fault.Of(err) != fault.Unauthenticated {
		t.Errorf("after an hour: %v", err)
	}
}

// record keeps the requests of a client as they were sent, and does not send them.
type record struct{ all []*http.Request }

func (r *record) RoundTrip(q *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(q.Body)
	q.Body = io.NopCloser(bytes.NewReader(body))
	q.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.all = append(r.all, q)
	return nil, errors.New("not sent")
}

func TestARequestIsOnlyWhatWasSigned(t *testing.T) {
	t.Parallel()
	h := open(t)
	k := h.keys.Issue(caller("a"))
	sign := func(o minio.PutObjectOptions) *http.Request {
		t.Helper()
		r := &record{}
		c, err := minio.New(strings.TrimPrefix(h.url, "http://"), &minio.Options{
			Creds: credentials.NewStaticV4(k.ID, k.Secret, k.Token), BucketLookup: minio.BucketLookupPath, Region: region, MaxRetries: 1, Transport: r, TrailingHeaders: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.PutObject(t.Context(), bucket, key("a"), strings.NewReader("hello"), 5, o)
		if len(r.all) == 0 {
			t.Fatal("nothing was to be sent: ", err)
		}
		return r.all[0]
	}
	send := func(q *http.Request) int {
		t.Helper()
		q.RequestURI = ""
		resp, err := http.DefaultTransport.RoundTrip(q)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	body := func(q *http.Request, change func(string) string) {
		was, _ := io.ReadAll(q.Body)
		text := change(string(was))
		q.Body, q.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	}
	plain := minio.PutObjectOptions{DisableMultipart: true}
	for name, o := range map[string]minio.PutObjectOptions{"in chunks": plain, "with trailers": {DisableMultipart: true, Checksum: minio.ChecksumCRC32}} {
		if got := send(sign(o)); got != http.StatusOK {
			t.Fatalf("%s, as it was signed: %d", name, got)
		}
		h.store.Remove("a", []string{hexes})
		for what, change := range map[string]func(*http.Request){
			"another path":         func(q *http.Request) { q.URL.Path = "/" + bucket + "/" + strings.Replace(key("a"), "0", "1", 1) },
			"another method":       func(q *http.Request) { q.Method = "DELETE" },
			"another query":        func(q *http.Request) { q.URL.RawQuery = "uploads=" },
			"another host":         func(q *http.Request) { q.Host = "sandpit.localhost" },
			"another date":         func(q *http.Request) { q.Header.Set(headerDate, time.Now().Add(time.Minute).UTC().Format(stamp)) },
			"no date":              func(q *http.Request) { q.Header.Del(headerDate) },
			"no signature":         func(q *http.Request) { q.Header.Del("Authorization") },
			"two signatures":       func(q *http.Request) { q.Header.Add("Authorization", q.Header.Get("Authorization")) },
			"a header that is not": func(q *http.Request) { q.Header.Set("X-Amz-Copy-Source", "/x") },
			"an unsigned body":     func(q *http.Request) { q.Header.Set(headerSum, unsigned) },
			"another size":         func(q *http.Request) { q.Header.Set("X-Amz-Decoded-Content-Length", "4") },
			"another body": func(q *http.Request) {
				body(q, func(s string) string { return strings.Replace(s, "hello", "HELLO", 1) })
			},
			"less of the body":       func(q *http.Request) { body(q, func(s string) string { return s[:20] }) },
			"a huge chunk":           func(q *http.Request) { body(q, func(s string) string { return "7fffffffffffffff" + s[1:] }) },
			"a chunk below 0":        func(q *http.Request) { body(q, func(s string) string { return "-5" + s[1:] }) },
			"a chunk without its":    func(q *http.Request) { body(q, func(s string) string { return "5\r\nhello\r\n0\r\n\r\n" }) },
			"a line without its end": func(q *http.Request) { body(q, func(s string) string { return strings.Repeat("5", 200_000) }) },
		} {
			q := sign(o)
			change(q)
			if got := send(q); got < 400 || got >= 500 {
				t.Errorf("%s, %s: %d", name, what, got)
			}
			if all := h.store.List("a", ""); len(all) != 0 {
				t.Fatalf("%s, %s: kept %v", name, what, all)
			}
		}
	}
	// Later, or by a clock that goes before, it is nothing.
	h = open(t) // the guard has counted guesses
	k = h.keys.Issue(caller("a"))
	for _, d := range []time.Duration{skew + time.Minute, -skew - time.Minute} {
		q := sign(plain)
		h.now = time.Now().Add(d)
		if got := send(q); got != http.StatusForbidden {
			t.Errorf("%v later: %d", d, got)
		}
		h.now = time.Now()
	}
}

// vector signs as AWS's own example of a list does, so that the form is AWS's and not only MinIO's.
func TestTheSignatureIsAWSs(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest("GET", "http://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J", nil)
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	r.Header.Set(headerSum, empty)
	r.Header.Set(headerDate, "20130524T000000Z")
	sum := sha256.Sum256([]byte(canonical(r, []string{"host", "x-amz-content-sha256", "x-amz-date"}, empty)))
	s := &signed{key: []byte("AWS4wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")}
	for _, p := range []string{"20130524", "us-east-1", "s3", "aws4_request"} {
		s.key = mac(s.key, p)
	}
	got := s.sign(fmt.Sprintf("%s\n20130524T000000Z\n20130524/us-east-1/s3/aws4_request\n%x", algorithm, sum))
	if want := "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"; got != want {
		t.Errorf("it is %s, want %s", got, want)
	}
}
