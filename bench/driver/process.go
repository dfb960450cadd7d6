package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// values is one line of results, by name.
type values map[string]float64

// parseLine reads "ns=12.3 cpu_ns=4.5". Every line must tell ns.
func parseLine(line string) (values, error) {
	v := values{}
	for _, field := range strings.Fields(line) {
		name, text, found := strings.Cut(field, "=")
		number, err := strconv.ParseFloat(text, 64)
		if !found || err != nil {
			return nil, fmt.Errorf("no result: %q", line)
		}
		v[name] = number
	}
	if _, found := v["ns"]; !found {
		return nil, fmt.Errorf("no result: %q", line)
	}
	return v, nil
}

// output runs a program to its end and returns what it printed, trimmed. What it complained about is in the error.
func output(ctx context.Context, timeout time.Duration, program string, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	command := exec.CommandContext(ctx, program, arguments...)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	command.WaitDelay = time.Second
	text, err := command.Output()
	return strings.TrimSpace(string(text)), explain(ctx, err, &complaint)
}

func explain(ctx context.Context, err error, complaint fmt.Stringer) error {
	if err == nil {
		return nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = errors.New("timed out")
	}
	if text := strings.TrimSpace(complaint.String()); text != "" {
		return fmt.Errorf("%w: %s", err, text)
	}
	return err
}

// runAlone runs one work in one process.
func runAlone(ctx context.Context, j job, scale float64) (values, error) {
	text, err := output(ctx, runTimeout, j.program, "run", j.work.asked(), strconv.Itoa(j.workers), number(scale))
	if err != nil {
		return nil, err
	}
	return parseLine(text)
}

// said collects what a process writes, and may be read while it does.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// runServer starts a server, lets the common client loose on it, and ends it by closing its input.
func runServer(ctx context.Context, j job, scale float64) (_ values, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	command := exec.CommandContext(ctx, j.program, "run", j.work.asked(), strconv.Itoa(j.workers), number(scale))
	var complaint said
	command.Stderr = &complaint
	command.WaitDelay = time.Second
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	text, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(text)
	hung := time.AfterFunc(startTimeout, cancel)
	defer func() {
		hung.Reset(endTimeout)
		input.Close()
		lines.WriteTo(bytes.NewBuffer(nil)) // to the end: Wait may not come earlier
		if ended := explain(ctx, command.Wait(), &complaint); ended != nil && err == nil {
			err = fmt.Errorf("the server did not end well: %w", ended)
		}
		hung.Stop()
	}()
	var port int
	if line, failed := lines.ReadString('\n'); failed != nil {
		return nil, fmt.Errorf("the server did not start: %s", strings.TrimSpace(line+complaint.String()))
	} else if _, failed := fmt.Sscanf(line, "port %d", &port); failed != nil {
		return nil, fmt.Errorf("the server told no port but %q", line)
	}
	hung.Stop()
	client := filepath.Join(filepath.Dir(j.program), "echo_client")
	arguments := []string{strconv.Itoa(port), strconv.Itoa(j.work.connections),
		number(max(0.1, echoSeconds*scale)), strconv.Itoa(command.Process.Pid)}
	if j.work.slow != "" {
		arguments = append(arguments, j.work.slow)
	}
	answer, err := output(ctx, runTimeout, client, arguments...)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return parseLine(answer)
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
