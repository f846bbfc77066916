// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package s3 keeps blobs as objects of a bucket, of Amazon S3 or of what speaks its protocol. What the
// bucket answers is not trusted, and its words reach the log alone.
package s3

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"sandpit.dev/blob"
	"sandpit.dev/fault"
)

const (
	suffix = ".sandpit" // of a blob's object
	// partSize is what an upload keeps in memory, and resends where a part fails. A bucket takes 10,000 parts.
	partSize = 16 << 20
	// tries is how often a request is sent that fails for a reason that may pass.
	tries = 4
	// stall is how long a connection may move no byte.
	stall = time.Minute
)

// Options say where the bucket is, and who asks.
type Options struct {
	Endpoint  string // its URL, http or https; "": Amazon's of the region
	Bucket    string
	Region    string // "": us-east-1
	Prefix    string // before the names of objects; "" or it ends with a slash
	PathStyle bool   // the bucket is in the path and not in the host name

	AccessKey, SecretKey, SessionToken string

	Purpose blob.Purpose // for errors; none: archives
}

var (
	validBucket = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	validRegion = regexp.MustCompile(`^[a-zA-Z0-9-]{1,64}$`)
	validPrefix = regexp.MustCompile(`^([A-Za-z0-9._-]{1,100}/){0,8}$`)
)

// Check checks all but the keys; fields are named after field.
func (o *Options) Check(field string) error {
	if !validBucket.MatchString(o.Bucket) || strings.Contains(o.Bucket, "..") {
		return fault.InvalidField(field+".bucket", "%.80q is not a valid name of a bucket: it has 3 to 63 letters a-z, digits, dots and dashes", o.Bucket)
	}
	if o.Region != "" && !validRegion.MatchString(o.Region) {
		return fault.InvalidField(field+".region", "%.80q is not a valid region", o.Region).WithRemedy("write it as eu-central-1; leave it out where the bucket has none")
	}
	if !validPrefix.MatchString(o.Prefix) || strings.Contains(o.Prefix, "..") {
		return fault.InvalidField(field+".prefix", "%.80q is not a valid prefix: it has parts of letters, digits, dots, dashes and underscores, each with a slash after it", o.Prefix).
			WithRemedy("write it as sandpit/ or leave it out")
	}
	if o.Endpoint == "" {
		return nil
	}
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return fault.InvalidField(field+".endpoint", "%.200q is not a valid address of a bucket's server", o.Endpoint).WithRemedy("write it as https://s3.example.org, without a path; the bucket has a field of its own")
	}
	return nil
}

// Store is a [blob.Store] of a bucket.
type Store struct {
	client    *minio.Client
	transport *http.Transport
	bucket    string
	prefix    string
	place     string
	purpose   blob.Purpose
}

var (
	_ blob.Store  = (*Store)(nil)
	_ blob.Lister = (*Store)(nil)
)

// New returns the store of a bucket. It sends no request.
func New(o Options) (*Store, error) {
	if err := o.Check("s3"); err != nil {
		return nil, err
	}
	if o.AccessKey == "" || o.SecretKey == "" {
		return nil, fault.New(fault.Invalid, "there are no keys for the bucket %s", o.Bucket).
			WithRemedy("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a file of credentials")
	}
	if o.Region == "" {
		o.Region = "us-east-1"
	}
	if o.Endpoint == "" {
		o.Endpoint = "https://s3." + o.Region + ".amazonaws.com"
	}
	u, err := url.Parse(o.Endpoint)
	if err != nil {
		return nil, err
	}
	lookup := minio.BucketLookupDNS
	if o.PathStyle {
		lookup = minio.BucketLookupPath
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: false, DisableCompression: true, MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: stall, MaxResponseHeaderBytes: 64 << 10,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &stalling{c}, nil
		},
	}
	client, err := minio.New(u.Host, &minio.Options{
		Creds: credentials.NewStaticV4(o.AccessKey, o.SecretKey, o.SessionToken), Secure: u.Scheme == "https", Region: o.Region,
		BucketLookup: lookup, Transport: transport, MaxRetries: tries,
	})
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the bucket %s cannot be used", o.Bucket)
	}
	place := "bucket " + o.Bucket + " at " + u.Scheme + "://" + u.Host
	if o.Prefix != "" {
		place += ", below " + o.Prefix
	}
	return &Store{client, transport, o.Bucket, o.Prefix, place, cmp.Or(o.Purpose, blob.Archives())}, nil
}

// Close ends the connections that wait for more to do.
func (s *Store) Close() { s.transport.CloseIdleConnections() }

// Place implements [blob.Store].
func (s *Store) Place() string { return s.place }

func (s *Store) key(name string) string { return s.prefix + name + suffix }

// Put implements [blob.Store].
func (s *Store) Put(ctx context.Context, name string, r io.Reader) error {
	if err := blob.CheckName(name); err != nil {
		return err
	}
	source := blob.NewReader(ctx, r)
	// Requests carry no SHA-256: readers compare the digest of the whole.
	o := minio.PutObjectOptions{PartSize: partSize, NumThreads: 1, ContentType: "application/zstd", DisableContentSha256: true, SendContentMd5: true}
	first := new(bytes.Buffer)
	_, err := io.CopyN(first, source, partSize)
	switch {
	case err == io.EOF: // it is one request's
		_, err = s.client.PutObject(ctx, s.bucket, s.key(name), bytes.NewReader(first.Bytes()), int64(first.Len()), o)
	case err == nil:
		_, err = s.client.PutObject(ctx, s.bucket, s.key(name), io.MultiReader(first, source), -1, o)
	}
	if err == nil {
		return nil
	}
	if source.Err() != nil {
		return source.Err()
	}
	return s.failed(ctx, name, err, "write to")
}

// Open implements [blob.Store].
func (s *Store) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := blob.CheckName(name); err != nil {
		return nil, err
	}
	o, err := s.client.GetObject(ctx, s.bucket, s.key(name), minio.GetObjectOptions{})
	if err != nil {
		return nil, s.failed(ctx, name, err, "read")
	}
	return &object{s, ctx, name, o}, nil
}

// Remove implements [blob.Store].
func (s *Store) Remove(ctx context.Context, name string) error {
	if err := blob.CheckName(name); err != nil {
		return err
	}
	err := s.client.RemoveObject(ctx, s.bucket, s.key(name), minio.RemoveObjectOptions{})
	if err == nil {
		err = s.client.RemoveIncompleteUpload(ctx, s.bucket, s.key(name))
	}
	if code := minio.ToErrorResponse(err).Code; err == nil || code == minio.NoSuchKey || code == "NoSuchUpload" {
		return nil
	}
	return s.failed(ctx, name, err, "write to")
}

// List implements [blob.Lister].
func (s *Store) List(ctx context.Context, each func(name string) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for o := range s.client.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix}) {
		if o.Err != nil {
			return s.failed(ctx, "", o.Err, "list")
		}
		name, is := strings.CutSuffix(strings.TrimPrefix(o.Key, s.prefix), suffix)
		if !is || blob.CheckName(name) != nil {
			continue
		}
		if err := each(name); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// failed says for callers what went wrong.
func (s *Store) failed(ctx context.Context, name string, err error, what string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	remedy := "have the operator look at the section " + s.purpose.Section + ".s3 of the configuration, and at the bucket"
	switch code := minio.ToErrorResponse(err).Code; code {
	case minio.NoSuchKey:
		if what == "read" {
			return blob.Missing(s, name)
		}
	case minio.NoSuchBucket:
		return fault.Wrap(fault.Unavailable, err, "there is no %s, where %s are kept", s.place, s.purpose.Kept).WithRemedy("%s", remedy)
	case minio.AccessDenied, minio.InvalidAccessKeyID, minio.SignatureDoesNotMatch, "ExpiredToken", "InvalidToken":
		return fault.Wrap(fault.Unavailable, err, "the %s, where %s are kept, does not let this server %s it (%s)", s.place, s.purpose.Kept, what, code).WithRemedy("%s", remedy)
	case "QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "InsufficientStorage":
		return fault.NoSpace(fault.HostDisk, err, "the %s, where %s are kept, is full", s.place, s.purpose.Kept).WithRemedy("make room there")
	}
	return fault.Wrap(fault.Unavailable, err, "the %s, where %s are kept, does not answer as it should", s.place, s.purpose.Kept).
		WithRemedy("ask again in a while; %s", remedy)
}

// object is a blob that is read.
type object struct {
	s    *Store
	ctx  context.Context
	name string
	o    *minio.Object
}

func (o *object) Read(p []byte) (int, error) {
	n, err := o.o.Read(p)
	if err != nil && err != io.EOF {
		err = o.s.failed(o.ctx, o.name, err, "read")
	}
	return n, err
}

func (o *object) Close() error { return o.o.Close() }

// stalling is a connection that breaks where no byte moves for long.
type stalling struct{ net.Conn }

func (c *stalling) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(stall)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *stalling) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(stall)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
