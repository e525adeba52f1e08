package main

import (
	"fmt"
	"os"

	"example.com/shop/greeting"
)

func main() { fmt.Println(greeting.From("a report"), os.Args[1:]) }
