// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"sandpit.dev/fault"
)

// Environment says which API server it is.
type Environment struct {
	Kubeconfig string // path of a file, or several with colons between them; "": that of the pod which this process runs in
	Context    string // of the kubeconfig; "": its current one
}

// Client speaks to one API server. It is safe for concurrent use.
type Client struct {
	base   *url.URL
	config *rest.Config
	http   *http.Client
	space  string
}

// maxAnswer bounds what is read of an answer, in bytes: lists are read in pages.
const maxAnswer = 64 << 20

// New returns a client. It speaks to nobody yet.
func New(e Environment) (*Client, error) {
	config, space, err := e.config()
	if err != nil {
		return nil, err
	}
	config.UserAgent = "sandpit"
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the address of the API server is not valid: %s", err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "how the API server is signed in to is not valid: %s", err)
	}
	return &Client{base, config, client, space}, nil
}

// config returns how the API server is reached, and the namespace that is meant where none is named.
func (e Environment) config() (*rest.Config, string, error) {
	if e.Kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, "", fault.Wrap(fault.Invalid, err, "this process runs in no pod, and no kubeconfig is named").
				WithRemedy("set kubernetes.kubeconfig to the path of one")
		}
		space, err := os.ReadFile(ownNamespace)
		return config, strings.TrimSpace(string(space)), err
	}
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: strings.Split(e.Kubeconfig, ":")}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: e.Context})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fault.Wrap(fault.Invalid, err, "the kubeconfig %s is not usable: %s", e.Kubeconfig, err)
	}
	space, _, err := loader.Namespace()
	return config, space, err
}

// ownNamespace is where a pod finds the name of its namespace.
const ownNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Host is the API server's address.
func (c *Client) Host() string { return c.base.Host }

// Namespace is the one that is meant where none is named.
func (c *Client) Namespace() string { return c.space }

// Close releases connections that are idle.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// url returns the URL of a path of the API, which is below that of the server.
func (c *Client) url(path string, query url.Values) string {
	u := *c.base
	u.Path = strings.TrimSuffix(u.Path, "/") + path
	u.RawQuery = query.Encode()
	return u.String()
}

// request sends one. The answer is good, and its body the caller's to close.
func (c *Client) request(ctx context.Context, method, path string, query url.Values, contentType string, body any) (*http.Response, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "a request to the API server cannot be written")
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url(path, query), r)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "a request to the API server cannot be made")
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fault.Wrap(fault.Unavailable, err, "the API server at %s does not answer: %s", c.base.Host, plainly(err)).
			WithRemedy("see by kubectl cluster-info whether it runs and can be reached from here")
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		defer func() { _ = resp.Body.Close() }()
		return nil, c.refusal(method, path, resp)
	}
	return resp, nil
}

// plainly leaves out of an error of net/http what the caller says himself.
func plainly(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// do sends a request, and reads its answer into out, unless that is nil.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, contentType string, body, out any) error {
	resp, err := c.request(ctx, method, path, query, contentType, body)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && out != nil {
		err = json.Unmarshal(b, out)
	}
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fault.Wrap(fault.Unavailable, err, "the answer of the API server at %s is cut off or makes no sense", c.base.Host)
	}
	return nil
}

// InPod reports whether this process runs in a pod that may speak to its API server.
func InPod() bool {
	_, err := os.Lstat(ownNamespace)
	return err == nil
}
