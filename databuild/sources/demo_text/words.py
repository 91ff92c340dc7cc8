"""Word lists for the English topics.

Nouns that follow an article in a text begin with a consonant sound, so that ``a {job}`` always reads well.
"""

from __future__ import annotations

from databuild.sources.demo_text.script import parse_pools

POOLS = parse_pools(
    """
first: Ada, Amir, Anika, Bashir, Beatriz, Bruno, Camille, Carlos, Chiara, Dalia, Dmitri, Edith, Elias, Esra, Farah,
  Felix, Fiona, Gabriel, Greta, Hana, Hugo, Ines, Ivan, Jakob, Jasmin, Joana, Kai, Kavya, Kenji, Lars, Leila, Leo,
  Lucia, Malik, Mara, Marek, Mei, Milan, Mina, Nadia, Niko, Nora, Olga, Omar, Oscar, Paula, Petra, Pia, Quentin,
  Rafael, Rania, Rosa, Ruben, Sam, Sana, Selma, Sofia, Stefan, Talia, Tariq, Theo, Uma, Vera, Viktor, Wanda, Yara,
  Yusuf, Zara, Zeno, Zoe
last: Adler, Almeida, Arslan, Bakker, Banerjee, Berg, Bianchi, Castro, Chen, Cohen, Costa, Dahl, Demir, Diaz, Dubois,
  Eriksen, Farouk, Fischer, Fontaine, Garcia, Grant, Haddad, Hansen, Hayashi, Hoffmann, Ibarra, Ivanova, Jensen,
  Kapoor, Keller, Kowalski, Laurent, Lindqvist, Lopez, Marchetti, Mehta, Mendes, Moreau, Morita, Nakamura, Novak,
  Okafor, Olsen, Park, Pereira, Petrov, Quinn, Rahman, Ricci, Rossi, Sato, Schmidt, Silva, Sorensen, Suzuki,
  Tanaka, Torres, Ueda, Varga, Vogel, Walker, Weber, Yilmaz, Zhang
job: baker, barber, beekeeper, bookseller, bus driver, carpenter, caterer, chemist, choir teacher, cook, courier,
  dentist, designer, dressmaker, florist, gardener, glassblower, goldsmith, hairdresser, hotel manager, joiner,
  journalist, lab technician, landscaper, librarian, lighthouse keeper, locksmith, mechanic, midwife, museum
  guide, music teacher, nurse, painter, paramedic, pastry chef, pharmacist, photographer, piano tuner, plumber,
  postal worker, potter, primary teacher, project manager, ranger, roofer, sailor, school secretary, shopkeeper,
  social worker, surveyor, tailor, tour guide, translator, vet, watchmaker
city: Aarhus, Accra, Adelaide, Ankara, Bergen, Bilbao, Bologna, Bristol, Brno, Cairo, Calgary, Cork, Cusco, Dakar,
  Dresden, Dundee, Fez, Gdansk, Geneva, Ghent, Graz, Haifa, Hanoi, Izmir, Jaipur, Kobe, Krakow, Kyoto, Lagos,
  Leeds, Lima, Lisbon, Ljubljana, Lund, Lyon, Malaga, Manila, Medellin, Montreal, Nairobi, Nantes, Osaka, Oulu,
  Perth, Porto, Pune, Quito, Recife, Riga, Rosario, Salzburg, Santiago, Seville, Split, Tallinn, Tampere, Tbilisi,
  Trieste, Tunis, Turku, Utrecht, Valencia, Vilnius, Winnipeg
town: Alderwick, Ashcombe, Barrowmere, Birchholt, Bramblegate, Briarford, Cobblestead, Coldbrook, Copperhill,
  Cranmoor, Dovecote, Dunmarsh, Eastholm, Elmbridge, Fallowdale, Fernhollow, Foxley Bay, Gullhaven, Hartsend,
  Hazelmouth, Heronsgate, Hollowell, Kestrel Point, Larkfield, Lindenau, Lowmere, Maplecross, Millbeck,
  Mossington, Netherby, Northquay, Oakenshaw, Otterburn, Pinecliff, Quarry End, Ravensworth, Redwharf, Rookhaven,
  Rushwater, Saltmarsh, Silverden, Skylark Green, Stonebeck, Sutterby, Thornwick, Tidewell, Underhill, Wethersea,
  Whinfell, Willowby, Windle, Wrenbury
object: basket, bell, bicycle, blue lantern, brass compass, broken kite, bundle of letters, camera, carved box, chess
  set, clay whistle, cuckoo clock, diary, feather, fiddle, fishing rod, flute, folding map, glass marble, green
  bottle, harmonica, jar of buttons, key, knitted scarf, leather satchel, magnifying glass, model ship, mug, music
  box, notebook, paper boat, parcel, pocket watch, postcard, puppet, red umbrella, rope ladder, seashell, silver
  spoon, sketchbook, snow globe, spinning top, suitcase, teapot, telescope, ticket stub, toolbox, trumpet,
  typewriter, walking stick, weather vane, wooden horse
animal: badger, barn owl, beaver, blackbird, bumblebee, cat, crab, crow, deer, dog, donkey, duck, ferret, fox, frog,
  goat, goose, hare, hedgehog, heron, horse, kingfisher, ladybird, lizard, lynx, magpie, mole, mouse, newt,
  parrot, peacock, pigeon, pony, puffin, rabbit, raven, robin, seal, sheepdog, snail, sparrow, squirrel, stork,
  swan, toad, tortoise, turtle, weasel, wolf, woodpecker
trait: brave, careful, cheerful, clever, clumsy, curious, dreamy, fearless, forgetful, friendly, gentle, grumpy,
  helpful, honest, hopeful, kind, lively, loyal, modest, nosy, patient, polite, proud, quiet, restless, sensible,
  shy, sleepy, stubborn, thoughtful, timid, tireless, witty
food: barley soup, bean stew, beetroot salad, carrot cake, cheese toast, cherry pie, chickpea curry, corn fritters,
  couscous, cucumber salad, dumplings, fish pie, flatbread, fried rice, garlic noodles, ginger biscuits, goulash,
  grilled peppers, hummus, lemon tart, lentil soup, mushroom risotto, nut loaf, pancakes, pea soup, pear crumble,
  plum cake, potato salad, pumpkin soup, ratatouille, rice pudding, roast vegetables, rye bread, spinach pie,
  tomato pasta, vegetable lasagne
item: batteries, blankets, bowls, brushes, candles, chairs, crayons, cushions, envelopes, erasers, flower pots,
  folders, forks, glasses, gloves, hooks, jars, lamps, light bulbs, mugs, napkins, notebooks, paint tins, pencils,
  plates, posters, puzzles, rulers, scarves, seed packets, shelves, socks, spoons, stickers, tea towels, tiles,
  torches, towels, trays, vases
shop: bakery, bookshop, bike shop, cafe, cheese shop, clothes shop, craft shop, farm shop, flower shop, garden centre,
  gift shop, hardware store, library shop, market stall, music shop, museum shop, paint shop, pet shop, print
  shop, school shop, shoe shop, sports shop, tea room, toy shop
event: book fair, bread-baking day, charity run, chess evening, choir concert, cookery class, craft market, dance
  night, film night, flower show, garden party, harvest supper, jumble sale, kite day, lantern walk, music
  workshop, neighbour lunch, photo exhibition, plant swap, poetry reading, pottery class, quiz night, repair cafe,
  school play, science morning, summer picnic, swimming gala, theatre trip, town walk, winter fair
hobby: baking bread, birdwatching, carving wood, choir singing, collecting stamps, cycling, drawing, fishing,
  gardening, hiking, juggling, keeping bees, knitting, learning chess, painting, photography, playing the cello,
  playing table tennis, pottery, reading crime novels, restoring furniture, rowing, running, sewing, stargazing,
  swimming, writing poems, yoga
colour: amber, beige, black, blue, bronze, brown, coral, cream, crimson, green, grey, ivory, lilac, maroon, navy, pink
day: Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday
month: January, February, March, April, May, June, July, August, September, October, November, December
place: boathouse, bus station, car park, castle ruins, clock tower, community hall, cricket ground, ferry dock, fish
  market, greenhouse, harbour, library, lighthouse, market square, mill, museum, music room, park gate,
  playground, post office, railway bridge, river bank, school garden, station platform, sports hall, stone bridge,
  swimming pool, theatre, town hall, tram stop, village pond, walled garden, watermill, windmill
weather: a bright cold morning | a foggy evening | a grey wet afternoon | a hot still day | a mild spring morning | a
  night of stars | a quiet snowy morning | a rainy market day | a stormy night | a sunny holiday | a windy autumn
  day | the first frost | the last warm evening of summer | the longest day of the year
"""
)
DAYS = POOLS["day"]
MONTHS = POOLS["month"]
