// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package objects is the object store by which clients send the files of a declarative image: the few calls of S3 that they
// make, over [contexts.Store]. Each is signed (version 4) with a key that [Keys] issues, which is valid for one project and
// one hour; what a key may is to put archives, and to ask whether one is there.
//
// A key of an object has one form, PROJECT/HASH/context.tar, and none of it is ever a path of the host's.
package objects

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/guard"
	"sandpit.dev/audit"
	"sandpit.dev/build/contexts"
	"sandpit.dev/fault"
)

// Root is where the bucket is: at the top of the server, since Daytona's command line keeps nothing of the store's address
// but the host.
const Root = "/" + bucket + "/"

const (
	bucket   = "daytona-contexts"
	fileName = "context.tar"
	region   = "local"

	mostList = 1 << 20 // bytes of the list of an upload's parts
)

// Store keeps what is sent; *contexts.Store is it.
type Store interface {
	Find(project, hash string) (contexts.Object, error)
	List(project, prefix string) []contexts.Object
	Put(project, hash string, r io.Reader, verify func() error) (contexts.Object, error)
	Begin(project, hash string) (string, error)
	PutPart(project, hash, id string, n int, r io.Reader, verify func() error) (contexts.Object, error)
	Complete(project, hash, id string, parts []contexts.Part) (contexts.Object, error)
	Abort(project, hash, id string) error
}

// New returns the handler of all below Root and of the path without its last slash.
func New(g *guard.Guard, keys *Keys, s Store) http.Handler {
	return g.Open(guard.Door{Via: "daytona", Error: answerError}, &handler{guard: g, keys: keys, store: s})
}

type handler struct {
	guard *guard.Guard
	keys  *Keys
	store Store
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s, err := h.keys.check(r)
	if err != nil {
		answerError(w, r, h.guard.Guessed(w, r, err))
		return
	}
	guard.AdmitCaller(r, access.Caller{Project: s.project, Actor: s.actor, Via: "daytona"})
	if told := audit.Of(r.Context()); told != nil {
		told.Name, told.Recorded = r.Method+"-object", r.Method != http.MethodGet && r.Method != http.MethodHead
	}
	if err := h.serve(w, r, s); err != nil {
		if fault.Is(err, fault.Exhausted) { // clients would try a 429 again for minutes
			err = guard.WithStatus(http.StatusForbidden, err)
		}
		answerError(w, r, err)
	}
}

func denied(format string, args ...any) error { return fault.New(fault.Denied, format, args...) }

// object returns the hash that the key of an object has; "" is the bucket.
func (s *signed) object(path string) (hash string, err error) {
	key := strings.TrimPrefix(strings.TrimPrefix(path, "/"+bucket), "/")
	if key == "" {
		return "", nil
	}
	project, rest, _ := strings.Cut(key, "/")
	if project != s.project {
		return "", denied("the key is good for one project, and this object is not of that")
	}
	hash, name, _ := strings.Cut(rest, "/")
	if name != fileName || contexts.CheckHash("key", hash) != nil {
		return "", denied("an object has a key of the form PROJECT/HASH/%s, with a hash of 32 hexadecimal digits", fileName)
	}
	return hash, nil
}

func (h *handler) serve(w http.ResponseWriter, r *http.Request, s *signed) error {
	hash, err := s.object(r.URL.Path)
	if err != nil {
		return err
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return fault.New(fault.Malformed, "the query cannot be read")
	}
	upload, part := q.Get("uploadId"), q.Has("partNumber")
	switch {
	case hash == "" && r.Method == http.MethodHead:
		w.Header().Set("X-Amz-Bucket-Region", region)
		return nil
	case hash == "" && r.Method == http.MethodGet && q.Has("location"):
		return answer(w, location{Region: region})
	case hash == "" && r.Method == http.MethodGet:
		return h.list(w, q, s)
	case hash == "":
		return denied("the bucket can be listed, and nothing else")
	case r.Method == http.MethodHead:
		return h.head(w, hash, s)
	case r.Method == http.MethodPut && r.Header.Get("X-Amz-Copy-Source") != "":
		return denied("objects are not copied here")
	case r.Method == http.MethodPut && upload != "" && part:
		n, err := strconv.Atoi(q.Get("partNumber"))
		if err != nil {
			return fault.InvalidField("partNumber", "%.20q is not a number", q.Get("partNumber"))
		}
		return h.put(w, r, s, func(body io.Reader, verify func() error) (contexts.Object, error) {
			return h.store.PutPart(s.project, hash, upload, n, body, verify)
		})
	case r.Method == http.MethodPut && !part && !q.Has("uploadId"):
		return h.put(w, r, s, func(body io.Reader, verify func() error) (contexts.Object, error) {
			return h.store.Put(s.project, hash, body, verify)
		})
	case r.Method == http.MethodPost && q.Has("uploads"):
		id, err := h.store.Begin(s.project, hash)
		if err != nil {
			return err
		}
		return answer(w, begun{Bucket: bucket, Key: s.key0(hash), UploadID: id})
	case r.Method == http.MethodPost && upload != "":
		return h.complete(w, r, hash, upload, s)
	case r.Method == http.MethodDelete && upload != "":
		if err := h.store.Abort(s.project, hash, upload); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return denied("a key of this store is for sending files of builds: they are neither read nor deleted by it")
}

func (s *signed) key0(hash string) string { return s.project + "/" + hash + "/" + fileName }

// put keeps a body.
func (h *handler) put(w http.ResponseWriter, r *http.Request, s *signed, keep func(io.Reader, func() error) (contexts.Object, error)) error {
	body, verify, err := s.body(r)
	if err != nil {
		return err
	}
	o, err := keep(body, verify)
	if err != nil {
		return hasty(err)
	}
	w.Header().Set("ETag", `"`+o.Tag+`"`)
	return nil
}

// hasty is the error of a body that was cut off.
func hasty(err error) error {
	if tooBig, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return guard.TooLarge(tooBig.Limit)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return changed("it ends too early")
	}
	return err
}

func (h *handler) head(w http.ResponseWriter, hash string, s *signed) error {
	o, err := h.store.Find(s.project, hash)
	if err != nil {
		return err
	}
	head := w.Header()
	head.Set("ETag", `"`+o.Tag+`"`)
	head.Set("Content-Length", strconv.FormatInt(o.Size, 10))
	head.Set("Content-Type", "application/x-tar")
	head.Set("Last-Modified", o.At.UTC().Format(http.TimeFormat))
	return nil
}

// list answers with the objects of a prefix, which has to be one of the project's.
func (h *handler) list(w http.ResponseWriter, q url.Values, s *signed) error {
	prefix := q.Get("prefix")
	rest, ok := strings.CutPrefix(prefix, s.project+"/")
	if !ok {
		return denied("the key is good for one project: a list needs a prefix that begins with its name and a slash")
	}
	hash, tail, all := strings.Cut(rest, "/")
	most, err := strconv.Atoi(q.Get("max-keys"))
	if err != nil || most < 0 || most > 1000 {
		most = 1000
	}
	out := listing{Name: bucket, Prefix: prefix, MaxKeys: most, Contents: []content{}}
	var found []contexts.Object
	if !all || strings.HasPrefix(fileName, tail) {
		found = h.store.List(s.project, hash)
	}
	slices.SortFunc(found, func(a, b contexts.Object) int { return strings.Compare(a.Hash, b.Hash) })
	for _, o := range found {
		if all && o.Hash != hash {
			continue
		}
		if out.KeyCount == most {
			out.IsTruncated = true
			break
		}
		out.KeyCount++
		out.Contents = append(out.Contents, content{Key: s.key0(o.Hash), LastModified: o.At.UTC().Format(time.RFC3339), ETag: `"` + o.Tag + `"`, Size: o.Size, StorageClass: "STANDARD"})
	}
	return answer(w, out)
}

// complete makes an object of the parts of an upload.
func (h *handler) complete(w http.ResponseWriter, r *http.Request, hash, upload string, s *signed) error {
	body, verify, err := s.body(r)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(body, mostList+1))
	if err == nil && len(text) > mostList {
		return guard.TooLarge(mostList)
	}
	if err == nil {
		err = verify()
	}
	if err != nil {
		return hasty(err)
	}
	var list struct {
		Parts []struct {
			PartNumber int
			ETag       string
		} `xml:"Part"`
	}
	if err := xml.Unmarshal(text, &list); err != nil {
		return fault.New(fault.Malformed, "the list of parts is not valid XML of S3")
	}
	parts := make([]contexts.Part, len(list.Parts))
	for i, p := range list.Parts {
		parts[i] = contexts.Part{Number: p.PartNumber, Tag: strings.Trim(p.ETag, `"`)}
	}
	o, err := h.store.Complete(s.project, hash, upload, parts)
	if err != nil {
		return err
	}
	return answer(w, completed{Location: "/" + bucket + "/" + s.key0(hash), Bucket: bucket, Key: s.key0(hash), ETag: `"` + o.Tag + `"`})
}
