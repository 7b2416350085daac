package pgtest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Cluster is three PostgreSQL nodes whose leader Patroni elects with an etcd.
type Cluster struct {
	dir   string
	etcd  *daemon
	Nodes []*Node
}

// Node is a PostgreSQL and its Patroni.
type Node struct {
	Name       string
	dir        string
	port, rest int
	patroni    *daemon
}

const patroniConfig = `scope: heads
name: %[1]s
restapi: {listen: "127.0.0.1:%[2]d", connect_address: "127.0.0.1:%[2]d"}
etcd: {host: "127.0.0.1:%[3]d"}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 1
    retry_timeout: 3
    maximum_lag_on_failover: 1048576
    synchronous_mode: true
    postgresql:
      use_pg_rewind: true
      parameters: {max_connections: 150, wal_log_hints: "on", hot_standby: "on"}
  initdb: [{encoding: UTF8}, {auth: trust}, no-sync]
  pg_hba: ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
postgresql:
  listen: "127.0.0.1:%[4]d"
  connect_address: "127.0.0.1:%[4]d"
  data_dir: %[5]s/data
  bin_dir: %[6]s
  pgpass: %[5]s/pgpass
  authentication: {superuser: {username: heads}, replication: {username: replicator}, rewind: {username: heads}}
  parameters: {unix_socket_directories: "%[5]s"}
`

// NewCluster starts an etcd and three nodes, and waits until one leads and the others
// follow. It uses version 2 of etcd's protocol, since Patroni 3.0.2 with version 3 lets
// a leader that was stopped take its lock back.
func NewCluster() (c *Cluster, err error) {
	dir, err := folder()
	if err != nil {
		return nil, err
	}
	c = &Cluster{dir: dir}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, c.Logs())
			c.Close()
		}
	}()
	client, err := c.startEtcd()
	if err != nil {
		return nil, err
	}
	for i := range 3 {
		n, err := c.newNode(fmt.Sprint("node", i+1), client)
		if err != nil {
			return nil, err
		}
		c.Nodes = append(c.Nodes, n)
		if i == 0 { // the others copy it
			if err := c.await(1, 0); err != nil {
				return nil, err
			}
		}
	}
	return c, c.await(1, 2)
}

func (c *Cluster) startEtcd() (client int, err error) {
	client, err = freePort()
	if err != nil {
		return 0, err
	}
	peer, err := freePort()
	if err != nil {
		return 0, err
	}
	clientURL, peerURL := fmt.Sprintf("http://127.0.0.1:%d", client), fmt.Sprintf("http://127.0.0.1:%d", peer)
	c.etcd, err = launch(filepath.Join(c.dir, "etcd.log"), "/usr/bin/etcd", "--data-dir", filepath.Join(c.dir, "etcd"), "--enable-v2=true", "--unsafe-no-fsync",
		"--listen-client-urls", clientURL, "--advertise-client-urls", clientURL,
		"--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL, "--initial-cluster", "default="+peerURL)
	return client, err
}

func (c *Cluster) newNode(name string, etcd int) (*Node, error) {
	n := &Node{Name: name, dir: filepath.Join(c.dir, name)}
	postgres, err := bin()
	if err == nil {
		n.port, err = freePort()
	}
	if err == nil {
		n.rest, err = freePort()
	}
	if err == nil {
		err = os.Mkdir(n.dir, 0o700)
	}
	if err == nil {
		err = own(n.dir)
	}
	if err == nil {
		err = give(filepath.Join(n.dir, "patroni.yml"), fmt.Sprintf(patroniConfig, name, n.rest, etcd, n.port, n.dir, postgres))
	}
	if err != nil {
		return nil, err
	}
	return n, n.Start()
}

// Start starts the Patroni of a node that was killed. Patroni starts the PostgreSQL.
func (n *Node) Start() (err error) {
	n.patroni, err = launch(filepath.Join(n.dir, "log"), "/usr/bin/patroni", filepath.Join(n.dir, "patroni.yml"))
	return err
}

// DSN returns the DSN of a database on this node.
func (n *Node) DSN(database string) string {
	return fmt.Sprintf("host=127.0.0.1 port=%d user=heads dbname=%s sslmode=disable", n.port, database)
}

// role is "leader", "standby", or "" if the node does not answer.
func (n *Node) role() string {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	conn, err := pgx.Connect(ctx, n.DSN("postgres"))
	if err != nil {
		return ""
	}
	defer conn.Close(ctx)
	var standby bool
	if conn.QueryRow(ctx, "SELECT pg_is_in_recovery()").Scan(&standby) != nil {
		return ""
	}
	return map[bool]string{true: "standby", false: "leader"}[standby]
}

// DSN returns the DSN of a database with all nodes.
func (c *Cluster) DSN(database string) string {
	var hosts, ports []string
	for _, n := range c.Nodes {
		hosts = append(hosts, "127.0.0.1")
		ports = append(ports, fmt.Sprint(n.port))
	}
	return fmt.Sprintf("host=%s port=%s user=heads dbname=%s sslmode=disable", strings.Join(hosts, ","), strings.Join(ports, ","), database)
}

// Leader returns the node that accepts writes, other than one that no longer counts, or
// nil.
func (c *Cluster) Leader(other *Node) *Node {
	for _, n := range c.Nodes {
		if n != other && n.role() == "leader" {
			return n
		}
	}
	return nil
}

// Await waits until one node leads, the others follow, and one of those is synchronous.
func (c *Cluster) Await() error { return c.await(1, 2) }

func (c *Cluster) await(leaders, standbys int) error {
	for begun := time.Now(); time.Since(begun) < 90*time.Second; time.Sleep(100 * time.Millisecond) {
		found := map[string]int{}
		for _, n := range c.Nodes {
			found[n.role()]++
		}
		if found["leader"] == leaders && found["standby"] == standbys && (standbys == 0 || c.synchronous()) {
			return nil
		}
	}
	return fmt.Errorf("the cluster is not complete in time")
}

// synchronous reports whether Patroni knows a synchronous standby. Until then, it
// promotes none.
func (c *Cluster) synchronous() bool {
	n := c.Leader(nil)
	if n == nil {
		return false
	}
	resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/cluster", n.rest))
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return err == nil && strings.Contains(string(text), "sync_standby")
}

// Switchover asks Patroni for another leader. Patroni refuses while it has not yet seen
// that a standby is synchronous.
func (c *Cluster) Switchover(from *Node) error {
	for begun := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		err := from.switchover()
		if err == nil || time.Since(begun) > 20*time.Second {
			return err
		}
	}
}

func (n *Node) switchover() error {
	resp, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/switchover", n.rest), "application/json", strings.NewReader(`{"leader":"`+n.Name+`"}`))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("switchover: %s: %s", resp.Status, text)
	}
	return nil
}

// Signal sends a signal to Patroni, the PostgreSQL and its processes.
func (n *Node) Signal(s syscall.Signal) {
	n.patroni.signal(s)
	if pid := pidIn(filepath.Join(n.dir, "data", "postmaster.pid")); pid > 1 {
		for _, child := range children(pid) {
			send(child, s)
		}
		send(pid, s)
	}
}

// Kill ends Patroni and the PostgreSQL like a loss of power.
func (n *Node) Kill() {
	n.Signal(syscall.SIGKILL)
	<-n.patroni.done
}

// Logs returns the ends of what the nodes have logged.
func (c *Cluster) Logs() string {
	var all strings.Builder
	for _, n := range c.Nodes {
		text, _ := os.ReadFile(filepath.Join(n.dir, "log"))
		fmt.Fprintf(&all, "== %s\n%s\n", n.Name, text[max(0, len(text)-3000):])
	}
	return all.String()
}

// Close ends all programs and removes their data.
func (c *Cluster) Close() {
	for _, n := range c.Nodes {
		n.Signal(Continue)
		n.Kill()
	}
	if c.etcd != nil {
		c.etcd.kill()
	}
	_ = os.RemoveAll(c.dir)
}
