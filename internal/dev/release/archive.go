package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// entry is a file at the top of an archive.
type entry struct {
	name string
	mode int64
	data []byte
}

// writeTar writes a compressed tar file in which all times are at.
func writeTar(w io.Writer, at time.Time, entries []entry) error {
	compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: at, Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(e.data); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

// writeZip writes a zip file in which all times are at.
func writeZip(w io.Writer, at time.Time, entries []entry) error {
	archive := zip.NewWriter(w)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		header.SetMode(os.FileMode(e.mode))
		f, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := f.Write(e.data); err != nil {
			return err
		}
	}
	return archive.Close()
}

// writeSums writes SHA256SUMS of the files, in the form that sha256sum -c reads.
func writeSums(dir string, names []string) error {
	return writeFile(filepath.Join(dir, "SHA256SUMS"), func(f *os.File) error {
		for _, name := range names {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(f, "%x  %s\n", sha256.Sum256(data), name); err != nil {
				return err
			}
		}
		return nil
	})
}

func writeFile(path string, write func(*os.File) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
