console.log("a test")
