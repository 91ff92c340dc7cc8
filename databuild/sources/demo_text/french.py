"""French topics."""

from __future__ import annotations

from databuild.sources.demo_text.languages import language

POOLS = """
first: Camille, Louis, Chloé, Hugo, Manon, Jules, Léa, Arthur, Inès, Gabriel, Zoé, Nathan, Élise, Rémi, Anaïs, Maxime
city: Lyon, Nantes, Lille, Dijon, Rennes, Genève, Liège, Tours, Québec, Bordeaux, Annecy, Namur, Nîmes, Dakar, Tunis
thing: cahiers, crayons, verres, livres, tapis, bols, paniers, pinceaux, cadres, coussins, ballons, citrons
object: une vieille montre, une clé d'argent, un parapluie rouge, une boîte à musique, une carte déchirée, un violon,
  une boussole, une lettre sans nom
animal: un chat gris, une cigogne, un vieux chien, une tortue, un âne, une chouette, un renard, une hirondelle
place: devant la gare, au marché, sur le port, près de la bibliothèque, au vieux moulin, sur la grande place, au
  pied du
  phare
dish: soupe à l'oignon, ratatouille, tarte aux pommes, salade de lentilles, quiche aux poireaux, purée de carottes,
  crème de potiron
day: lundi, mardi, mercredi, jeudi, vendredi, samedi, dimanche
fact: la photosynthèse=le processus par lequel les plantes fabriquent du sucre avec de la lumière, de l'eau et du
  dioxyde
  de carbone | un arc-en-ciel=la lumière du soleil que les gouttes de pluie séparent en couleurs | l'inflation=la
  hausse
  générale des prix au fil du temps | un algorithme=une liste précise d'étapes qui résout un type de problème |
  la marée=le mouvement régulier de la mer, dû surtout à l'attraction de la lune | une métaphore=une figure qui
  désigne une
  chose par le nom d'une autre | une éclipse de lune=le passage de la lune dans l'ombre de la terre | un nombre
  premier=un
  nombre plus grand que un, divisible seulement par un et par lui-même
pair: Where is the station?=Où est la gare ? | I arrive on May {i_2_28}.=J'arrive le {i_2_28} mai. | {first} lives in
  {city}.={first} habite à {city}. | The train leaves at {i_5_11}.=Le train part à {i_5_11} heures. | We need {i_5_40}
  chairs.=Il nous faut {i_5_40} chaises. | It is raining today.=Il pleut aujourd'hui. | My room is number
  {i_100_900}.=Ma
  chambre porte le numéro {i_100_900}. | Thank you for the letter.=Merci pour la lettre.
good: Le service à {city} était excellent. | Tout est arrivé en {i_2_9} jours et en parfait état. | {first} m'a
  aidé avec
  beaucoup de gentillesse. | Je le rachèterais sans hésiter.
bad: Il s'est cassé au bout de {i_2_20} jours. | J'ai attendu {i_30_90} minutes et personne n'est venu. | Le
  magasin de
  {city} ne répond pas. | Il sent mauvais et il a coûté {i_40_300} euros.
labels: positif, négatif
"""

SCRIPT = """
@ shop shop
? {first} achète {n} {thing} à {p} euros pièce et donne {b} euros. Combien lui rend-on ?
? J'ai pris {n} {thing} à {p} euros l'un dans une boutique de {city} et j'ai payé avec {b} euros. Quelle est ma
  monnaie ?
= Le prix total est de {n} × {p} = {t} euros. On rend donc {b} - {t} = **{c} euros**.
= [Deux étapes suffisent|Calculons] : {n} × {p} = {t}, puis {b} - {t} = {c}. La monnaie est de {c} euros.
> Et le prix d'une seule pièce ?
< Une seule pièce coûte {p} euros.
@ travel travel
? Un train part de {city} et roule {h} heures à {v} km/h, puis encore {left} km. Quelle distance parcourt-il ?
? {first} voyage pendant {h} heures à {v} km/h de moyenne et fait ensuite {left} kilomètres. Quel est le total ?
= En {h} heures, on parcourt {v} × {h} = {km} km. Avec les {left} km qui restent : {km} + {left} = **{all} km**.
@ area area
? Un jardin de {city} mesure {a} m de long et {b} m de large. Quels sont son aire et son périmètre ?
? {first} veut clôturer un terrain rectangulaire de {a} m sur {b} m. Calcule le périmètre et l'aire.
= Aire : {a} × {b} = {area} m². Périmètre : 2 × ({a} + {b}) = 2 × {sum} = {per} m.
@ fact fact
? Qu'est-ce que c'est : {term} ? Une phrase pour un enfant de {i_6_12} ans, à {city}.
? {first}, de {city}, m'a demandé ce que veut dire « {term} ». Que répondre ?
? Définis en bref « {term} » et conseille à {first} une façon de le retenir en {i_2_9} jours.
= [En bref|Une réponse simple] : {term}, c'est {what}. [Pour le retenir|Pour s'en souvenir], on peut le dessiner et
  l'expliquer à quelqu'un, par exemple à {first2}.
= C'est {what}. [Ensuite|Après cela], on peut chercher un exemple {place}.
@ story
? Écris un conte très court avec {animal} et {object}.
? Raconte-moi une histoire à {city}, avec {first}, {first2} et {animal}.
= [Cette nuit-là|Un matin d'hiver|Il y a {i_20_90} ans], à {city}, {first} trouva {object} {place}. [Personne ne
  savait à qui
  c'était|On aurait dit que cela attendait quelqu'un]. Soudain arriva {animal}, [tranquille|sans un bruit]. [Ils
  marchèrent
  ensemble|Ils suivirent la rivière] pendant {i_2_9} heures. Enfin {first2} ouvrit la porte et dit : « [Vous
  voilà|Je vous
  attendais] ! » [Depuis|Depuis ce jour], on y sert une {dish} chaque {day}.
@ letter
? Écris un courriel à {first} : je ne peux pas venir {day} et je propose une autre date.
? Il me faut un message aimable pour {first}, à {city}, afin de déplacer notre rendez-vous de {day}.
= Bonjour {first},¶¶[Je suis désolé, mais|J'ai un empêchement :] je ne peux pas venir {day}. Est-ce que {day2} à
  {i_8_19}
  heures, {place}, [te conviendrait|irait pour toi] ? [Sinon, propose une autre date|Un autre jour me va aussi].
  ¶¶[Amicalement|À bientôt],¶{first2}
@ recipe
? Comment préparer une {dish} pour {i_2_9} personnes ?
? {first} veut faire une {dish} {day}. Quelles sont les étapes ?
= 1. Rassembler les ingrédients pour {i_2_9} personnes ({dish}).¶2. [Laver et couper|Éplucher et couper] les
  légumes ou les
  fruits.¶3. Cuire à feu [doux|moyen] pendant {i_15_50} minutes.¶4. Goûter et ajouter [un peu de citron|des herbes
  fraîches].¶¶[Laisser reposer {i_5_15} minutes|Servir aussitôt]. Bon appétit !
@ review review
? Cet avis est-il positif ou négatif ? « {review} » Réponds par un mot.
! [{label}|Il est {label}.]
? Classe cet avis (positif ou négatif) et justifie : {review}
! Il est {label} ; la phrase « {text} » le montre bien.
@ translate pairs
? Traduis en français : {en}
? Please put this into French: {en}
= {own}
= [En français|In French] : « {own} »
"""

TOPICS = language("fr", POOLS, SCRIPT)
