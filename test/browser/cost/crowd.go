// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"time"
)

// Crowd is a proxy before a server, which has many sandboxes where the server has one: each is as that one, with a name, an id and
// a label of its own. All else is the server's.
type Crowd struct {
	URL    string
	server *http.Server
	ended  chan error // of the server
}

// NewCrowd returns one of n sandboxes, which listens on the loopback until it is closed.
func NewCrowd(server string, n int) (*Crowd, error) {
	to, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
			if r.In.URL.Path == "/v1/sandboxes" && r.In.Method == http.MethodGet {
				r.Out.Header.Set("Accept-Encoding", "identity")
				q := r.Out.URL.Query()
				q.Del("cursor")
				r.Out.URL.RawQuery = q.Encode()
				*r.Out = *r.Out.WithContext(context.WithValue(r.Out.Context(), askedKey{}, r.In.URL.Query()))
			}
		},
		ModifyResponse: func(r *http.Response) error {
			q, list := r.Request.Context().Value(askedKey{}).(url.Values)
			if !list || r.StatusCode != http.StatusOK {
				return nil
			}
			from, _ := strconv.Atoi(q.Get("cursor"))
			limit, _ := strconv.Atoi(q.Get("limit"))
			return multiply(r, from, limit, n)
		},
	}
	c := &Crowd{URL: "http://" + l.Addr().String(), ended: make(chan error, 1)}
	c.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { _ = recover() }() // how the proxy ends an answer that broke off
		proxy.ServeHTTP(w, r)
	})}
	go func() { c.ended <- c.server.Serve(l) }()
	return c, nil
}

// Close ends the proxy and its connections.
func (c *Crowd) Close() error {
	err := c.server.Close()
	if ended := <-c.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// askedKey is of what the browser asked for, in a request of the proxy's.
type askedKey struct{}

// multiply has an answer with one sandbox be a page of n.
func multiply(r *http.Response, from, limit, n int) error {
	var all struct {
		Items []map[string]any `json:"items"`
		Next  *string          `json:"next_cursor"`
	}
	err := json.NewDecoder(r.Body).Decode(&all)
	if err = errors.Join(err, r.Body.Close()); err != nil || len(all.Items) != 1 {
		return fmt.Errorf("the list has %d sandboxes: %v", len(all.Items), err)
	}
	one := all.Items[0]
	all.Items = nil
	for i := from; i < min(n, from+limit); i++ {
		next := maps.Clone(one)
		next["id"], next["key"], next["metadata"] = fmt.Sprintf("many%012d", n-i), fmt.Sprintf("many-%05d", i), map[string]string{"number": strconv.Itoa(i)}
		all.Items = append(all.Items, next)
	}
	if from+limit < n {
		all.Next = new(strconv.Itoa(from + limit))
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	r.Header.Set("Content-Length", strconv.Itoa(len(text)))
	return nil
}
