// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sandpit.dev/fault"
)

// Watch is a stream of what becomes of objects. One goroutine reads it.
type Watch[T any] struct {
	c    *Client
	body io.ReadCloser
	in   *json.Decoder
}

// Watch begins one, behind a version of a list. The caller closes it.
func (k Kind[T]) Watch(ctx context.Context, c *Client, namespace, selector, version string) (*Watch[T], error) {
	query := url.Values{"watch": {"1"}, "labelSelector": {selector}, "resourceVersion": {version}, "allowWatchBookmarks": {"true"}}
	resp, err := c.request(ctx, http.MethodGet, k.path(namespace), query, "", nil)
	if err != nil {
		return nil, err
	}
	return &Watch[T]{c, resp.Body, json.NewDecoder(resp.Body)}, nil
}

// Next returns what the next change made of an object; gone: it was deleted. The error is fault.PreconditionFailed when the API
// server does not know any more what came behind the version: the list is to be read anew.
func (w *Watch[T]) Next() (o *T, gone bool, err error) {
	for {
		var e struct {
			Type   string
			Object json.RawMessage
		}
		if err := w.in.Decode(&e); err != nil {
			return nil, false, fault.Wrap(fault.Unavailable, err, "the API server at %s ended a watch", w.c.base.Host)
		}
		switch e.Type {
		case "BOOKMARK":
			continue
		case "ERROR":
			var s metav1.Status
			if err := json.Unmarshal(e.Object, &s); err == nil && s.Code == http.StatusGone {
				return nil, false, fault.New(fault.PreconditionFailed, "the watch has expired: %s", clip(s.Message, 200))
			}
			return nil, false, fault.New(fault.Unavailable, "the API server at %s ended a watch: %s", w.c.base.Host, clip(s.Message, 200))
		}
		o := new(T)
		if err := json.Unmarshal(e.Object, o); err != nil {
			return nil, false, fault.Wrap(fault.Unavailable, err, "what the API server at %s tells makes no sense", w.c.base.Host)
		}
		return o, e.Type == "DELETED", nil
	}
}

// Close ends it.
func (w *Watch[T]) Close() { _ = w.body.Close() }

// maxLine bounds the line that FirstLine returns.
const maxLine = 4 << 10

// FirstLine waits for the first line of what a pod's container writes, and returns it without its end.
func (c *Client) FirstLine(ctx context.Context, namespace, pod, container string) (string, error) {
	resp, err := c.request(ctx, http.MethodGet, Pods().path(namespace, pod, "log"), url.Values{"container": {container}, "follow": {"true"}, "limitBytes": {"4096"}}, "", nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	line, err := bufio.NewReaderSize(io.LimitReader(resp.Body, maxLine), maxLine).ReadString('\n')
	if err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", fault.Wrap(fault.Unavailable, err, "pod %s ended without a word", pod)
	}
	return strings.TrimSuffix(line, "\n"), nil
}
